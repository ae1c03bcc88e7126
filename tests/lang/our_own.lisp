;; Where the language is its own: the forms, functions and signal values that Clojure does not have.

(sum [])
;=> 0
(avg [])
;=> nil
(avg [1 2 nil])
;=> 1.5
(sum [1 2.5])
;=> 3.5
(sum-by :a [{:a 1} {:a nil} {}])
;=> 1
(avg-by :a [{:a 1} {:a nil} {:a 2}])
;=> 1.5
(min-by :a [{:a nil} {:a 2} {:a 1}])
;=> {:a 1}
(sum-by "x" [{:x 2}])
;=> 2
(pluck :a [{:a 1} {"a" 2}])
;=> [1 2]
(group-by "a" [{:a 1}])
;=> {1 [{:a 1}]}
(sort-by "a" [{:a 2} {:a 1}])
;=> [{:a 1} {:a 2}]
(max-by :v [])
;=> nil
(distinct-by first [[1 2] [1 3]])
;=> [[1 2]]
(combinations [1 2 3] 0)
;=> [[]]
(combinations [1 2 3] 4)
;=> []
(pairs [1 2])
;=> [[1 2]]
(zip [1 2] [3])
;=> [[1 3]]
(count (filter (where :a) [{:a 1} {:a false}]))
;=> 1
(filter (where :tags includes "x") [{:tags ["x"]} {:tags "axb"} {:tags nil}])
;=> [{:tags ["x"]} {:tags "axb"}]
(filter (where :s in ["a" :b]) [{:s "a"} {:s "b"} {:s :a} {:s nil}])
;=> [{:s "a"} {:s "b"} {:s :a}]
(filter (where :a > 1) [{:a 2} {:a nil} {}])
;=> [{:a 2}]
(filter (where :s = "active") [{:s :active}])
;=> [{:s :active}]
(filter (where :s not= nil) [{:s 1} {}])
;=> [{:s 1}]
(filter (all-of (where :a = 1) (where :b = 2)) [{:a 1 :b 2} {:a 1}])
;=> [{:a 1, :b 2}]
((any-of) 1)
;=> false
((all-of) 1)
;=> true
(.indexOf "héllo" "l")
;=> 2
(extract "a(b)?c" "ac")
;=> nil
(extract "x" "axb")
;=> "x"
(extract "(\\d+)-(\\d+)" "10-20" 2)
;=> "20"
(extract-int "(\\d+)-(\\d+)" "10-20" 2)
;=> 20
(extract-int "x" "y" 1 7)
;=> 7
(extract-int "(\\w+)" "abc")
;=> nil
(floor 3.7)
;=> 3
(round -2.5)
;=> -3
(round 2.4)
;=> 2
(trunc 3.9)
;=> 3
(pow 2 3)
;=> 8.0
(pow 2.0 0.5)
;=> 1.4142135623730951
(upcase "a")
;=> "A"
(downcase "A")
;=> "a"
(parse-int "12")
;=> 12
(parse-int 12)
;=> nil
(subs "abc" 1 99)
;=> "bc"
(subs "abc" 2 1)
;=> ""
(subs "abc" 10)
;=> ""
(subs "😀a" 1)
;=> "a"
(count "😀a")
;=> 2
(.length "😀a")
;=> 3
(.indexOf "😀a" "a")
;=> 2
(.substring "😀a" 2)
;=> "a"
(count "👨‍👩‍👧e\u0301")
;=> 2
(nth [1 2] -1)
;=> nil
(subvec [1 2 3] -1)
;=> [1 2 3]
(pop [])
;=> nil
(contains? [1 2] 2)
;=> true
(contains? [1 2] 0)
;=> false
(json/parse-string "{\"a\":1.0}")
;=> {"a" 1.0}
(json/parse-string "[1, 2")
;=> nil
(json/parse-string nil)
;=> nil
(json/parse-string "NaN")
;=> nil
(json/generate-string {"b" 1 "a" [1.5 nil true]})
;=> "{\"a\":[1.5,null,true],\"b\":1}"
(json/generate-string {1 "a"})
;=> "{\"1\":\"a\"}"
(json/generate-string "é\n")
;=> "\"é\\n\""
(json/parse-lines "{\"a\":1}\n\nbad\n2")
;=> [{"a" 1} nil 2]
(select-keys (describe [{:a 1 :b 2} {:a 3}]) [:type :count :scanned :item-types])
;=> {:type "vector", :count 2, :scanned 2, :item-types {"map" 2}}
(map :pct (vals (:keys (describe [{"event" "turn"} {"event" "done" "ok" true} 5]))))
;=> [66.7 33.3]
(get-in (describe [{:a 1} {:a nil}]) [:keys :a])
;=> {:examples [1 nil], :pct 100.0, :present 2, :types {"integer" 1, "nil" 1}}
(get-in (describe {:a [1 2]}) [:keys :a])
;=> {:examples ["[1 2]"], :types {"vector" 1}}
(describe "héllo")
;=> {:count 5, :sample "héllo", :type "string"}
(describe nil)
;=> {:sample nil, :type "nil"}
(:scanned (describe (range 2000)))
;=> 1000
(count (:keys (describe (zipmap (range 200) (range 200)))))
;=> 100
(count (:sample (describe (apply str (repeat 500 "x")))))
;=> 121
(type nil)
;=> nil
(type :a)
;=> :keyword
(type inc)
;=> :function
(type #{})
;=> :set
(type 1.5)
;=> :number
(type #"a")
;=> :regex
(type (java.util.Date. 0))
;=> :date
(apropos "blank")
;=> ["blank?"]
(doc "map")
;=> nil
(apropos " ")
;=> []
(count (filter #{"json" "sequences"} (dir)))
;=> 2
budget/remaining
;=> {}
((where :a > 1) {:a "x"})
;=> false
((where :a <= :b) {:a {}})
;=> false
((where :a includes 1) {:a 5})
;=> false
((where :a in [nil]) {})
;=> false
((where :a in {:x 1}) {:a :x})
;=> false
((where :a in #{:x}) {:a "x"})
;=> true
(dir "json")
;=> ["json/generate-string" "json/parse-lines" "json/parse-string"]
(doc 'nope)
;=> nil
(println "a" [1 "b"] nil :k)
;=> nil
(pmap + [1 2] [10 20])
;=> [11 22]
(pmap inc nil)
;=> []
(pcalls)
;=> []
(pmap :a [{:a 1}])
;=> [1]
(do (pmap (fn [x] (println x)) [1 2 3]) nil)
;=> nil
(task "a" 5)
;=> 5
(task (str "a" 1) (+ 1 2))
;=> 3
(budget/remaining)
;=> {}
(str/upper-case "a")
;=> "A"
(string/join "," [1])
;=> "1"
(regex/re-find #"a" "a")
;=> "a"
(set/union #{1} #{2})
;=> #{1 2}
(core/map inc [1])
;=> [2]
(clojure.core/str "a")
;=> "a"
(def inc dec) (inc 5)
;=> 4
(def map 5) map
;=> 5
(let [if 5] (if true 1 2))
;=> 1
(let [when 5] when)
;=> 5
(defn foo [fn] (fn 1)) (foo inc)
;=> 2
#_1 2
;=> 2
; comment
;=> nil
1 ; c
;=> 1
(defn rr [n] (if (zero? n) 0 (inc (rr (dec n))))) (rr 1500)
;=> 1500
(doseq [i (range 100000)] i)
;=> nil
(count (for [i (range 300) j (range 300)] 1))
;=> 90000
(case :x :a 1)
;=> nil
(condp = 1)
;=> nil
(some-> {:a 1} (get :a) inc)
;=> 2
(comment)
;=> nil
(do (def xs []) (doseq [x [1 2]] (def xs (conj xs x))) xs)
;=> [1 2]
(keyword ":a")
;=> :a
(str {:b 1 :a "x"})
;=> "{:a \"x\", :b 1}"
(pr-str #{3 1 2})
;=> "#{1 2 3}"
(str (java.time.LocalDate/parse "2024-01-02"))
;=> "2024-01-02"
(str [nil "a" \b])
;=> "[nil \"a\" \"b\"]"
(sort [true false])
;=> [false true]
(sort [[1 2] [1]])
;=> [[1] [1 2]]
(first "héllo")
;=> "h"
(update-vals inc {:a 1})
;=> {:a 2}
(get {"a" 1} :a)
;=> 1
(:user-id {"user_id" 5})
;=> 5
(:user-id {:user_id 5})
;=> 5
(assoc {"a" 1} :a 2)
;=> {:a 2, "a" 1}
(update {"a" 1} :a inc)
;=> {"a" 2}
(select-keys {"a" 1} [:a])
;=> {:a 1}
(let [{:keys [user-id]} {"user_id" 5}] user-id)
;=> 5
(group-by :a [{"a" 1}])
;=> {1 [{"a" 1}]}
(dissoc {"a" 1} :a)
;=> {"a" 1}
(contains? {"a" 1} :a)
;=> true
({"a" 1} :a)
;=> 1
(get-in {"a" {"b" 1}} [:a :b])
;=> 1
(.getTime (java.util.Date. (java.util.Date. 7)))
;=> 7
(str (Duration/between (Instant/parse "2024-01-02T00:00:00Z") (Instant/parse "2024-01-01T00:00:00.5Z")))
;=> "PT-23H-59M-59.5S"
(pr-str (LocalDate/parse "2024-01-02"))
;=> "#local-date \"2024-01-02\""
(format "%tF %tT" (java.util.Date. 0) (java.util.Date. 0))
;=> "1970-01-01 00:00:00"
(format "%c" 65)
;=> "A"
(format "%-5%|")
;=> "%    |"
(format "%e" 0.0)
;=> "0.000000e+00"
(format "%g" 0.0)
;=> "0.00000"
(format "%x" -255)
;=> "ffffffffffffff01"
(format "%,d" 12)
;=> "12"
(format "%.900f" 0.5)
;=> "0.500000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"
(char 955)
;=> "λ"
(keyword 'abc)
;=> :abc
(capitalize "abc")
;=> "Abc"
(index-of "héh" "h" 1)
;=> 2
(last-index-of "abab" "b" 2)
;=> 1
(subs "h\u00e9l" 1 2)
;=> "é"
(trim 5)
;=> "5"
(Math/log 0)
;=> ##-Inf
(Math/log -1)
;=> ##NaN
(Math/exp 1000)
;=> ##Inf
(Math/round ##NaN)
;=> 0
(Math/round ##Inf)
;=> 9223372036854775807
(Integer/parseInt "zz" 36)
;=> 1295
(long ##NaN)
;=> 0
(int ##NaN)
;=> 0
(pow 10 400)
;=> ##Inf
(pow -10 401)
;=> ##-Inf
(pow 0 -2)
;=> ##Inf
(* 99999999999999999999 99999999999999999999)
;=> 9999999999999999999800000000000000000001
(- 99999999999999999999 1)
;=> 99999999999999999998
(+ 99999999999999999999 1)
;=> 100000000000000000000
(* 1.5 99999999999999999999)
;=> 1.5E20
(walk (fn [e] nil) identity {:a 1})
;=> {}
(intersection nil #{1})
;=> nil
(rename-keys {:a 1} {:b :c})
;=> {:a 1}
(repeat -1 1)
;=> []
(range 5 5 0)
;=> []
(take ##Inf [1 2])
;=> [1 2]
(take ##NaN [1 2])
;=> []
(combinations [1 2] -1)
;=> []
(avg-by :a [])
;=> nil
(max-by :a [{:a 1} {:a 5} {:b 1}])
;=> {:a 5}
(sum-by [:a :b] [{:a {:b 2}}])
;=> 2
(distinct-by "c" [{:c 1} {:c 1}])
;=> [{:c 1}]
(extract "a" nil)
;=> nil
(extract "(a)" "a" 5)
;=> nil
(extract "(a)" "a" -1)
;=> nil
(re-find #"(?>a+)b" "aab")
;=> "aab"
(re-find #"a++b" "aab")
;=> "aab"
(json/parse-string "[1e400]")
;=> [##Inf]
(json/parse-lines 5)
;=> nil
(apropos "nothing-like-this")
;=> []
(doc 'tool/echo)
;=> nil
(dir 'nothing)
;=> []
(export-meta 'nope)
;=> nil
({:a 1} :a :b)
;=> 1
('a {:a 1})
;=> nil
(let [v #'inc] (v 1))
;=> 2
(do (def g inc) (#'g 1))
;=> 2
(do (def g inc) (map #'g [1 2]))
;=> [2 3]
(println (range 3) "x")
;=> nil
(prn "a" [1])
;=> nil
(pr-str 'a/b)
;=> "a/b"
(= [1 2] (first (seq {1 2})))
;=> true
(compare [1 2] (first (seq {1 3})))
;=> -1
(sort [[2] [1]])
;=> [[1] [2]]
(= #"a" #"a")
;=> false
(= (fn [] 1) (fn [] 1))
;=> false
(#(do [%1 %2]) 1 2)
;=> [1 2]
(#() )
;=> nil
##-Inf
;=> ##-Inf
\u0041
;=> "A"
"\ud83d\ude00"
;=> "😀"
"a\u0041"
;=> "aA"
[:a #_:b :c #_ #_ 1 2]
;=> [:a :c]
(let [{a 0 b 1} [10 20]] [a b])
;=> [10 20]
(let [{[x] 0 :as all} [[1] 2]] [x all])
;=> [1 [[1] 2]]
[(source 'inc) (source 'nope) (source "x")]
;=> [nil nil nil]
(str (symbol "ns/a") (symbol :+))
;=> "ns/a+"
