;; What Clojure 1.11 answers, and what we answer with it. The values below were computed by Clojure;
;; characters are written as strings and every sequence as a vector.

(/ 1.0 0.0)
;=> ##Inf
(/ 0.0 0)
;=> ##NaN
(quot 7 -2)
;=> -3
(quot -7 2)
;=> -3
(rem 5.5 2)
;=> 1.5
(mod -5.5 2)
;=> 0.5
(mod 5.0 3)
;=> 2.0
(max 1 2.0)
;=> 2.0
(min 1.0 1)
;=> 1
(max 1 ##NaN)
;=> ##NaN
(inc 1.5)
;=> 2.5
(- 5)
;=> -5
(* 2 0.5)
;=> 1.0
(+ 0.1 0.2)
;=> 0.30000000000000004
(int \A)
;=> 65
(int -3.9)
;=> -3
(long 3.7)
;=> 3
(double 1)
;=> 1.0
(float 1.5)
;=> 1.5
(compare "a" "c")
;=> -2
(compare :a :c)
;=> -2
(compare nil 1)
;=> -1
(compare 1 nil)
;=> 1
(compare [1] [1 2])
;=> -1
(compare true false)
;=> 1
(compare 1 1.0)
;=> 0
(compare "abc" "abd")
;=> -1
(compare "ab" "abcd")
;=> -2
(= nil false)
;=> false
(= {} [])
;=> false
(= #{1 2} #{2 1})
;=> true
(= [1 [2]] [1 [2]])
;=> true
(= "a" :a)
;=> false
(not= 1 2 3)
;=> true
(= 1 1 1)
;=> true
(< 1 2 2)
;=> false
(<= 1 1 2)
;=> true
(> 3)
;=> true
(== 1 1.0 1)
;=> true
(and 1 nil 2)
;=> nil
(and 1 2)
;=> 2
(or nil false)
;=> false
(or nil 2)
;=> 2
(if nil 1)
;=> nil
(when true 1 2)
;=> 2
(when false)
;=> nil
(cond false 1)
;=> nil
(cond nil 1 :else 2)
;=> 2
(case "a" "a" 1 2)
;=> 1
(case [1 2] [1 2] :ok :no)
;=> :ok
(case {:a 1} {:a 1} :ok :no)
;=> :ok
(case 'a (a b) :ok :no)
;=> :ok
(case nil nil 1 2)
;=> 1
(condp = 2 1 :one 2 :two)
;=> :two
(condp = 5 1 :one :def)
;=> :def
(condp some [1 2 3] #{5} :five #{2} :>> inc)
;=> 3
(condp = 2 1 :one 2 :>> (fn [x] [:hit x]) :other)
;=> [:hit true]
(if-let [x 1] x 2)
;=> 1
(if-let [x nil] 1)
;=> nil
(if-let [[a b] [1 2]] [a b] nil)
;=> [1 2]
(when-let [x 5] (inc x))
;=> 6
(if-some [x false] x :none)
;=> false
(when-some [x nil] 1)
;=> nil
(when-first [x [1 2]] x)
;=> 1
(when-first [x []] x)
;=> nil
(let [[a b & c :as d] [1 2 3 4]] [a b c d])
;=> [1 2 [3 4] [1 2 3 4]]
(let [[a b & more] nil] [a b more])
;=> [nil nil nil]
(let [[a [b]] [1 [2]]] [a b])
;=> [1 2]
(let [{:keys [a b] :or {b 5}} {:a 1}] [a b])
;=> [1 5]
(let [{a :a :as m} {:a 1}] [a m])
;=> [1 {:a 1}]
(let [{:strs [a]} {"a" 1}] a)
;=> 1
(let [{:syms [a]} {'a 1}] a)
;=> 1
(let [{a 0 b 1} [10 20]] [a b])
;=> [10 20]
(let [[a & {:keys [b]}] [1 :b 2]] [a b])
;=> [1 2]
((fn [& {:keys [a]}] a) :a 1)
;=> 1
((fn [a & r] [a r]) 1)
;=> [1 nil]
((fn [a & r] [a r]) 1 2 3)
;=> [1 [2 3]]
(let [[a b] "xy"] [a b])
;=> ["x" "y"]
(let [{:keys [a] :or {a 1}} {:a nil}] a)
;=> nil
(let [{{:keys [x]} :pos} {:pos {:x 3}}] x)
;=> 3
((fn fact [n] (if (< n 2) 1 (* n (fact (dec n))))) 5)
;=> 120
(loop [i 0 acc []] (if (< i 3) (recur (inc i) (conj acc i)) acc))
;=> [0 1 2]
((fn [x] (if (> x 5) x (recur (inc x)))) 0)
;=> 6
(map (fn [f] (f)) (loop [i 0 fs []] (if (< i 3) (recur (inc i) (conj fs (fn [] i))) fs)))
;=> [0 1 2]
(for [x [1 2 3] :when (odd? x) y [x (* 10 x)]] y)
;=> [1 10 3 30]
(for [x (range 3) :let [y (* x x)]] [x y])
;=> [[0 0] [1 1] [2 4]]
(for [x (range 5) y (range x) :while (< y 2)] [x y])
;=> [[1 0] [2 0] [2 1] [3 0] [3 1] [4 0] [4 1]]
(doseq [x [1 2]] x)
;=> nil
(-> {:a 1} (assoc :b 2) :b)
;=> 2
(->> [1 2 3] (map inc) (filter even?))
;=> [2 4]
(-> 5 inc)
;=> 6
(-> [1 2] first)
;=> 1
(as-> 5 x (+ x 1) (* x 2))
;=> 12
(cond-> 1 true inc false (* 10))
;=> 2
(cond->> [1 2] true (map inc))
;=> [2 3]
(some-> {:a {:b 1}} :a :b inc)
;=> 2
(some-> nil inc)
;=> nil
(some->> [1 2] (map inc))
;=> [2 3]
(first nil)
;=> nil
(first "abc")
;=> "a"
(rest nil)
;=> []
(next [1])
;=> nil
(second [1])
;=> nil
(last [1 2 3])
;=> 3
(butlast [1])
;=> nil
(ffirst [[1 2]])
;=> 1
(nfirst [[1 2] 3])
;=> [2]
(nnext [1 2 3])
;=> [3]
(fnext [1 2])
;=> 2
(nth [1 2] 1)
;=> 2
(nth [1 2] 5 :x)
;=> :x
(nth nil 0)
;=> nil
(nth "abc" 1)
;=> "b"
(take 2 [1 2 3])
;=> [1 2]
(take -1 [1])
;=> []
(take 5 [1])
;=> [1]
(take 2 nil)
;=> []
(drop 1 [1 2])
;=> [2]
(drop 5 [1])
;=> []
(drop -1 [1 2])
;=> [1 2]
(take-last 2 [1 2 3])
;=> [2 3]
(take-last 0 [1])
;=> nil
(take-last -1 [1 2])
;=> nil
(drop-last [1 2 3])
;=> [1 2]
(drop-last 2 [1 2 3])
;=> [1]
(take-while even? [2 4 5 6])
;=> [2 4]
(drop-while even? [2 4 5 6])
;=> [5 6]
(split-at 1 [1 2 3])
;=> [[1] [2 3]]
(split-with even? [2 3 4])
;=> [[2] [3 4]]
(partition 2 [1 2 3 4 5])
;=> [[1 2] [3 4]]
(partition 2 1 [1 2 3])
;=> [[1 2] [2 3]]
(partition 3 3 [:x :y] [1 2 3 4])
;=> [[1 2 3] [4 :x :y]]
(partition 3 3 nil [1 2])
;=> [[1 2]]
(partition 2 3 [1 2 3 4 5 6 7])
;=> [[1 2] [4 5]]
(partition -1 [1 2 3])
;=> []
(partition-all 2 [1 2 3])
;=> [[1 2] [3]]
(partition-all 2 1 [1 2 3])
;=> [[1 2] [2 3] [3]]
(partition-by odd? [1 3 2 4 5])
;=> [[1 3] [2 4] [5]]
(partition 2.0 [1 2 3])
;=> []
(nthnext [1 2 3] 1)
;=> [2 3]
(nthrest [1 2 3] 5)
;=> []
(subvec [1 2 3] 1)
;=> [2 3]
(subvec [1 2 3] 1 2)
;=> [2]
(peek [1 2])
;=> 2
(pop [1 2])
;=> [1]
(peek [])
;=> nil
(count nil)
;=> 0
(count "abc")
;=> 3
(count {:a 1})
;=> 1
(seq [])
;=> nil
(seq nil)
;=> nil
(seq "")
;=> nil
(seq #{})
;=> nil
(reverse [1 2])
;=> [2 1]
(reverse "ab")
;=> ["b" "a"]
(cons 1 nil)
;=> [1]
(cons 1 [2])
;=> [1 2]
(concat [1] nil [2])
;=> [1 2]
(concat)
;=> []
(flatten [1 [2 [3 nil]]])
;=> [1 2 3 nil]
(flatten nil)
;=> []
(flatten 5)
;=> []
(flatten {:a [1]})
;=> []
(interpose :x [1 2 3])
;=> [1 :x 2 :x 3]
(interpose :x [])
;=> []
(interleave [1 2] [3 4 5])
;=> [1 3 2 4]
(interleave)
;=> []
(interleave [1])
;=> [1]
(range 5)
;=> [0 1 2 3 4]
(range 1 5)
;=> [1 2 3 4]
(range 5 1 -2)
;=> [5 3]
(range 0 1 0.25)
;=> [0 0.25 0.5 0.75]
(range 1.5)
;=> [0 1]
(range 5 0)
;=> []
(map + [1 2] [10 20 30])
;=> [11 22]
(map + [1 2] [10 20] [100 200])
;=> [111 222]
(map :a [{:a 1} {}])
;=> [1 nil]
(map {:a 1} [:a :b])
;=> [1 nil]
(map [10 20] [0 1])
;=> [10 20]
(map inc nil)
;=> []
(map identity "ab")
;=> ["a" "b"]
(map key {:a 1})
;=> [:a]
(mapv inc [1 2])
;=> [2 3]
(map-indexed vector [:a :b])
;=> [[0 :a] [1 :b]]
(mapcat identity [[1] [2 3]])
;=> [1 2 3]
(mapcat vector [1 2] [:a :b])
;=> [1 :a 2 :b]
(mapcat identity ["ab" "c"])
;=> ["a" "b" "c"]
(mapcat (fn [x] nil) [1 2])
;=> []
(filter odd? [1 2 3])
;=> [1 3]
(filter #{1} [1 2])
;=> [1]
(filter identity [nil 1 false])
;=> [1]
(remove nil? [1 nil])
;=> [1]
(keep #(when (odd? %) %) [1 2 3])
;=> [1 3]
(keep-indexed #(when (odd? %1) %2) [:a :b :c])
;=> [:b]
(some even? [1 2])
;=> true
(some #{:x} [:x])
;=> :x
(some nil? [nil])
;=> true
(every? even? [])
;=> true
(every? even? [2 3])
;=> false
(not-any? even? [1])
;=> true
(not-every? even? [2 3])
;=> true
(distinct? 1 2)
;=> true
(distinct? 1 1)
;=> false
(reduce + 10 [1 2])
;=> 13
(reduce + [])
;=> 0
(reduce + [5])
;=> 5
(reduce max [1 3 2])
;=> 3
(reduce (fn [a x] (if (> a 5) (reduced a) (+ a x))) 0 [1 2 3 4 5])
;=> 6
(reduce conj [] [1 2])
;=> [1 2]
(reduce-kv (fn [a k v] (conj a [k v])) [] {:a 1})
;=> [[:a 1]]
(reduce-kv (fn [a k v] (+ a k v)) 0 [10 20])
;=> 31
(reduce + nil)
;=> 0
(reduce (fn [a b] [a b]) [1])
;=> 1
(frequencies "aab")
;=> {"a" 2 "b" 1}
(frequencies [1 1.0])
;=> {1 1 1.0 1}
(group-by odd? [1 2 3])
;=> {false [2] true [1 3]}
(group-by :a [{:a 1} {:a 2} {:a 1}])
;=> {1 [{:a 1} {:a 1}] 2 [{:a 2}]}
(sort [3 1 2])
;=> [1 2 3]
(sort > [3 1 2])
;=> [3 2 1]
(sort ["b" "a"])
;=> ["a" "b"]
(sort [[2 1] [1 2]])
;=> [[1 2] [2 1]]
(sort [nil 1])
;=> [nil 1]
(sort nil)
;=> []
(sort [:b :a])
;=> [:a :b]
(sort (fn [a b] false) [3 1 2])
;=> [3 1 2]
(sort (fn [a b] (- b a)) [3 1 2])
;=> [3 2 1]
(sort-by count ["aa" "b"])
;=> ["b" "aa"]
(sort-by :a > [{:a 1} {:a 2}])
;=> [{:a 2} {:a 1}]
(sort-by - [1 2])
;=> [2 1]
(sort-by first [[2 :a] [1 :b]])
;=> [[1 :b] [2 :a]]
(sort #{3 1})
;=> [1 3]
(distinct [1 2 1])
;=> [1 2]
(distinct [1 1.0])
;=> [1 1.0]
(dedupe [1 1 2 1])
;=> [1 2 1]
(conj [1] 2 3)
;=> [1 2 3]
(conj nil 1)
;=> [1]
(conj #{1} 1 2)
;=> #{1 2}
(conj {:a 1} [:b 2])
;=> {:a 1 :b 2}
(conj {:a 1} {:b 2 :c 3})
;=> {:a 1 :b 2 :c 3}
(conj {:a 1} nil)
;=> {:a 1}
(conj)
;=> []
(conj nil)
;=> nil
(into [] #{1})
;=> [1]
(into #{} [1 1 2])
;=> #{1 2}
(into {} [[:a 1] [:b 2]])
;=> {:a 1 :b 2}
(into {} {:a 1})
;=> {:a 1}
(into [1] nil)
;=> [1]
(into {} [{:a 1} {:b 2}])
;=> {:a 1 :b 2}
(into [])
;=> []
(into)
;=> []
(empty [1])
;=> []
(empty {:a 1})
;=> {}
(empty "a")
;=> nil
(empty nil)
;=> nil
(empty 5)
;=> nil
(empty? nil)
;=> true
(empty? {})
;=> true
(not-empty "")
;=> nil
(not-empty [1])
;=> [1]
(tree-seq vector? seq [1 [2 [3]]])
;=> [[1 [2 [3]]] 1 [2 [3]] 2 [3] 3]
(min-key count "a" "bb" "c")
;=> "c"
(max-key count "aa" "bb" "c")
;=> "bb"
(max-key :a {:a 1} {:a 3})
;=> {:a 3}
(get {:a 1} :b 9)
;=> 9
(get [1 2] 0)
;=> 1
(get [1 2] 5)
;=> nil
(get "abc" 1)
;=> "b"
(get nil :a)
;=> nil
(get #{1} 1)
;=> 1
(get 5 :a)
;=> nil
(get {nil 1} nil)
;=> 1
(get-in {:a [{:b 1}]} [:a 0 :b])
;=> 1
(get-in nil [:a] 3)
;=> 3
(get-in {:a nil} [:a] :d)
;=> nil
(get-in {:a 1} [])
;=> {:a 1}
(get-in {:a 1} nil)
;=> {:a 1}
(assoc {:a 1} :b 2 :c 3)
;=> {:a 1 :b 2 :c 3}
(assoc [1 2] 0 9)
;=> [9 2]
(assoc [1 2] 2 3)
;=> [1 2 3]
(assoc nil :a 1)
;=> {:a 1}
(assoc-in {} [:a :b] 1)
;=> {:a {:b 1}}
(assoc-in nil [:a] 1)
;=> {:a 1}
(assoc-in [[1]] [0 0] 2)
;=> [[2]]
(assoc-in {:a 1} [] 2)
;=> {:a 1 nil 2}
(dissoc {:a 1 :b 2} :a :c)
;=> {:b 2}
(dissoc nil :a)
;=> nil
(dissoc {:a 1})
;=> {:a 1}
(update {:a 1} :a inc)
;=> {:a 2}
(update {} :a (fnil inc 0))
;=> {:a 1}
(update nil :a (fnil inc 0))
;=> {:a 1}
(update [1 2] 0 inc)
;=> [2 2]
(update [10 20] 2 (fnil inc 0))
;=> [10 20 1]
(update-in {:a {:b 1}} [:a :b] + 5)
;=> {:a {:b 6}}
(update-in {} [:a :b] (fnil conj []) 1)
;=> {:a {:b [1]}}
(update-in {:a 1} [] identity)
;=> {:a 1 nil nil}
(merge {:a 1} {:b 2} nil)
;=> {:a 1 :b 2}
(merge)
;=> nil
(merge nil nil)
;=> nil
(merge nil {:a 1})
;=> {:a 1}
(merge {:a 1} [:b 2])
;=> {:a 1 :b 2}
(merge [1 2] [3 4])
;=> [1 2 [3 4]]
(merge-with + {:a 1} {:a 2 :b 3})
;=> {:a 3 :b 3}
(merge-with conj {:a []} {:a 1})
;=> {:a [1]}
(merge-with +)
;=> nil
(merge-with + [1 2] {1 10})
;=> [1 12]
(select-keys {:a 1 :b 2} [:a])
;=> {:a 1}
(select-keys nil [:a])
;=> {}
(select-keys {:a 1} nil)
;=> {}
(select-keys [10 20] [0])
;=> {0 10}
(keys {:a 1})
;=> [:a]
(keys {})
;=> nil
(keys nil)
;=> nil
(vals {:a 1})
;=> [1]
(vals {})
;=> nil
(find {:a 1} :a)
;=> [:a 1]
(find [10 20] 1)
;=> [1 20]
(find nil :a)
;=> nil
(contains? {:a nil} :a)
;=> true
(contains? #{1} 1)
;=> true
(contains? nil :a)
;=> false
(contains? "abc" 1)
;=> true
(contains? "abc" 3)
;=> false
(zipmap [:a :b] [1 2 3])
;=> {:a 1 :b 2}
(hash-map :a 1)
;=> {:a 1}
(array-map :b 1 :a 2)
;=> {:a 2 :b 1}
(update-vals {:a 1} inc)
;=> {:a 2}
(update-keys {:a 1} name)
;=> {"a" 1}
(update-vals [10 20] inc)
;=> [11 21]
(update-keys [10 20] inc)
;=> {1 10 2 20}
(update-vals nil inc)
;=> {}
(set nil)
;=> #{}
(set "aab")
;=> #{"a" "b"}
(set {:a 1})
;=> #{[:a 1]}
(hash-set 1 1)
;=> #{1}
(disj #{1 2} 1)
;=> #{2}
(disj nil 1)
;=> nil
(clojure.set/union #{1} #{2})
;=> #{1 2}
(clojure.set/union)
;=> #{}
(clojure.set/union nil #{1})
;=> #{1}
(clojure.set/union {:a 1} #{[:b 2]})
;=> {:a 1 :b 2}
(clojure.set/intersection #{1 2} #{2})
;=> #{2}
(clojure.set/intersection nil #{1})
;=> nil
(clojure.set/intersection #{1 2} nil)
;=> nil
(clojure.set/intersection {:a 1} #{[:a 1]})
;=> {:a 1}
(clojure.set/intersection [1 2] #{2})
;=> #{}
(clojure.set/intersection #{1 2} [2 3])
;=> #{1}
(clojure.set/difference #{1 2} #{2})
;=> #{1}
(clojure.set/difference nil #{1})
;=> nil
(clojure.set/difference #{1 2} nil)
;=> #{1 2}
(clojure.set/difference #{1 2} [2])
;=> #{1}
(clojure.set/difference #{"a" "b"} "ab")
;=> #{"a" "b"}
(clojure.set/difference #{[:a 1]} {:a 1})
;=> #{}
(clojure.set/subset? #{1} #{1 2})
;=> true
(apply + 1 2 [3 4])
;=> 10
(apply + nil)
;=> 0
(apply str "ab")
;=> "ab"
(apply {:a 1} [:a])
;=> 1
((comp inc inc) 1)
;=> 3
((comp) 1)
;=> 1
((comp str +) 1 2)
;=> "3"
((partial + 1 2) 3)
;=> 6
((complement even?) 1)
;=> true
((constantly 1))
;=> 1
((juxt inc dec) 1)
;=> [2 0]
((juxt + vector) 1 2 3)
;=> [6 [1 2 3]]
((fnil + 10 20) nil nil)
;=> 30
((every-pred odd? pos?) 1 3)
;=> true
((every-pred odd?) 2)
;=> false
((some-fn even? pos?) 1)
;=> true
((some-fn :a) {})
;=> nil
(str nil)
;=> ""
(str 1.0)
;=> "1.0"
(str 1.5e10)
;=> "1.5E10"
(str 100000.0)
;=> "100000.0"
(str 1e7)
;=> "1.0E7"
(str 0.001)
;=> "0.001"
(str 1.0E-5)
;=> "1.0E-5"
(str [1 "a" :b nil])
;=> "[1 \"a\" :b nil]"
(str {:a "x"})
;=> "{:a \"x\"}"
(str #{1})
;=> "#{1}"
(str :a)
;=> ":a"
(str 'foo)
;=> "foo"
(str ##Inf)
;=> "Infinity"
(str [##Inf])
;=> "[##Inf]"
(str true nil 1)
;=> "true1"
(str #"a+")
;=> "a+"
(str "a" \b)
;=> "ab"
(pr-str "a\nb")
;=> "\"a\\nb\""
(pr-str nil)
;=> "nil"
(pr-str "a" 1)
;=> "\"a\" 1"
(pr-str [1 nil "x"])
;=> "[1 nil \"x\"]"
(pr-str {:a 1, :b 2})
;=> "{:a 1, :b 2}"
(pr-str {"k" [1 2]})
;=> "{\"k\" [1 2]}"
(pr-str ##NaN)
;=> "##NaN"
(pr-str 1e100)
;=> "1.0E100"
(pr-str "q\"x\\")
;=> "\"q\\\"x\\\\\""
(name :a)
;=> "a"
(name "a")
;=> "a"
(keyword "a")
;=> :a
(keyword nil)
;=> nil
(keyword 1)
;=> nil
(keyword :a)
;=> :a
(keyword 'a)
;=> :a
(subs "hello" 1 3)
;=> "el"
(subs "hello" 2)
;=> "llo"
(subs "hello" 5)
;=> ""
(clojure.string/join "," [1 nil "a"])
;=> "1,,a"
(clojure.string/join ["a" "b"])
;=> "ab"
(clojure.string/join "," {:a 1})
;=> "[:a 1]"
(clojure.string/join "," nil)
;=> ""
(clojure.string/join nil [1 2])
;=> "12"
(clojure.string/join "ab")
;=> "ab"
(clojure.string/split "a,b,,c,," #",")
;=> ["a" "b" "" "c"]
(clojure.string/split "a,b,c" #"," 2)
;=> ["a" "b,c"]
(clojure.string/split "abc" #"")
;=> ["a" "b" "c"]
(clojure.string/split "" #",")
;=> [""]
(clojure.string/split "a,,b" #"," -1)
;=> ["a" "" "b"]
(clojure.string/split ",a" #",")
;=> ["" "a"]
(clojure.string/split "a1b2" #"\d")
;=> ["a" "b"]
(clojure.string/split-lines "a\nb\r\nc\n")
;=> ["a" "b" "c"]
(clojure.string/split-lines "")
;=> [""]
(clojure.string/trim "  a ")
;=> "a"
(clojure.string/triml "  a ")
;=> "a "
(clojure.string/trimr "  a ")
;=> "  a"
(clojure.string/trim-newline "a\r\n\n")
;=> "a"
(clojure.string/trim "\u00A0x\u00A0")
;=> " x "
(clojure.string/trim "\u2003x\u2003")
;=> "x"
(clojure.string/blank? nil)
;=> true
(clojure.string/blank? " \t")
;=> true
(clojure.string/upper-case "aé")
;=> "AÉ"
(clojure.string/upper-case 12)
;=> "12"
(clojure.string/lower-case "ABC")
;=> "abc"
(clojure.string/capitalize "hELLO")
;=> "Hello"
(clojure.string/reverse "abc")
;=> "cba"
(clojure.string/replace "aba" "a" "b")
;=> "bbb"
(clojure.string/replace "a1b2" #"\d" "x")
;=> "axbx"
(clojure.string/replace "a1" #"(\d)" "<$1>")
;=> "a<1>"
(clojure.string/replace "a1b2" #"(\d)" (fn [[m g]] (str "<" g ">")))
;=> "a<1>b<2>"
(clojure.string/replace "abc" #"b" clojure.string/upper-case)
;=> "aBc"
(clojure.string/replace "a.b" "." "$")
;=> "a$b"
(clojure.string/replace-first "aba" "a" "x")
;=> "xba"
(clojure.string/replace-first "a1b2" #"\d" "x")
;=> "axb2"
(clojure.string/starts-with? "abc" "a")
;=> true
(clojure.string/ends-with? "abc" "c")
;=> true
(clojure.string/includes? "abc" "b")
;=> true
(clojure.string/includes? "abc" "")
;=> true
(clojure.string/index-of "hello" "l" 3)
;=> 3
(clojure.string/index-of "hello" "")
;=> 0
(clojure.string/index-of "abc" "b" 1.9)
;=> 1
(clojure.string/index-of "abc" "c" 10)
;=> nil
(clojure.string/last-index-of "hello" "l")
;=> 3
(clojure.string/last-index-of "hello" "l" 2)
;=> 2
(clojure.string/last-index-of "abc" "a" -1)
;=> nil
(parse-long "42")
;=> 42
(parse-long "+42")
;=> 42
(parse-long "-0")
;=> 0
(parse-long " 42")
;=> nil
(parse-long "4.2")
;=> nil
(parse-long "9223372036854775808")
;=> nil
(parse-double "1e3")
;=> 1000.0
(parse-double " 1.5 ")
;=> 1.5
(parse-double ".5")
;=> 0.5
(parse-double "1.")
;=> 1.0
(parse-double "abc")
;=> nil
(parse-double "NaN")
;=> ##NaN
(parse-double "Infinity")
;=> ##Inf
(parse-double "0x1.0p0")
;=> 1.0
(parse-double "1.5f")
;=> 1.5
(parse-boolean "true")
;=> true
(parse-boolean "TRUE")
;=> nil
(re-find #"\d+" "a12b")
;=> "12"
(re-find #"(\w)(\d)" "a1")
;=> ["a1" "a" "1"]
(re-find #"z" "a")
;=> nil
(re-find #"a(\d+)?" "xa")
;=> ["a" nil]
(re-matches #"\d+" "12")
;=> "12"
(re-matches #"\d" "12")
;=> nil
(re-seq #"\d" "1a2")
;=> ["1" "2"]
(re-seq #"(\w)(\d)" "a1b2")
;=> [["a1" "a" "1"] ["b2" "b" "2"]]
(re-seq #"z" "a")
;=> nil
(re-find (re-pattern "a+") "baa")
;=> "aa"
(re-find #"(?i)ABC" "xabc")
;=> "abc"
(re-find #"\p{Alpha}+" "12ab")
;=> "ab"
(re-find #"(?<y>\d+)" "a12")
;=> ["12" "12"]
(format "%s" "a")
;=> "a"
(format "%d" 5)
;=> "5"
(format "%5d|%-5d|%05d" 42 42 42)
;=> "   42|42   |00042"
(format "%.2f" 3.14159)
;=> "3.14"
(format "%8.3f|" 3.14159)
;=> "   3.142|"
(format "%e" 12345.678)
;=> "1.234568e+04"
(format "%g" 0.0001)
;=> "0.000100000"
(format "%g" 123456.0)
;=> "123456"
(format "%x" 255)
;=> "ff"
(format "%X" 255)
;=> "FF"
(format "%o" 8)
;=> "10"
(format "%b" nil)
;=> "false"
(format "%c" \A)
;=> "A"
(format "%%")
;=> "%"
(format "%n")
;=> "\n"
(format "%,d" 1234567)
;=> "1,234,567"
(format "%,.2f" 1234567.891)
;=> "1,234,567.89"
(format "%+d" 5)
;=> "+5"
(format "%(d" -5)
;=> "(5)"
(format "% d" 42)
;=> " 42"
(format "%#x" 255)
;=> "0xff"
(format "%S" "abc")
;=> "ABC"
(format "%10s|%-10s|" "a" "b")
;=> "         a|b         |"
(format "%.3s" "abcdef")
;=> "abc"
(format "%2$s %1$s" "a" "b")
;=> "b a"
(format "%s %<s" "a")
;=> "a a"
(format "%h" "abc")
;=> "17862"
(format "%s" [1 2])
;=> "[1 2]"
(format "%s" :a)
;=> ":a"
(format "%.0f" 2.5)
;=> "3"
(format "%.0f" 0.5)
;=> "1"
(format "%.1f" 0.25)
;=> "0.3"
(format "%x" -1)
;=> "ffffffffffffffff"
(format "%05.1f" -2.5)
;=> "-02.5"
(format "%d%%" 50)
;=> "50%"
(format "%s" 1.0)
;=> "1.0"
(format "%E" 1.0)
;=> "1.000000E+00"
(format "%G" 1.0)
;=> "1.00000"
(format "%.2g" 12.34)
;=> "12"
(clojure.walk/postwalk #(if (number? %) (inc %) %) {:a [1 2]})
;=> {:a [2 3]}
(clojure.walk/prewalk #(if (number? %) (inc %) %) [1 [2]])
;=> [2 [3]]
(clojure.walk/walk inc reverse [1 2])
;=> [3 2]
(clojure.walk/walk identity identity {:a 1})
;=> {:a 1}
(clojure.walk/postwalk identity {:a 1})
;=> {:a 1}
(clojure.walk/keywordize-keys {"a" {"b" 1}})
;=> {:a {:b 1}}
(clojure.walk/stringify-keys {:a {:b 1}})
;=> {"a" {"b" 1}}
(bit-and 12 10)
;=> 8
(bit-or 1 2 4)
;=> 7
(bit-xor 5 3)
;=> 6
(bit-not 5)
;=> -6
(bit-shift-left 1 3)
;=> 8
(bit-shift-left 1 64)
;=> 1
(bit-shift-left 1 -1)
;=> -9223372036854775808
(bit-shift-right -8 1)
;=> -4
(bit-set 0 64)
;=> 1
(bit-test 1 64)
;=> true
(bit-and-not 12 10 4)
;=> 0
(bit-flip 5 0)
;=> 4
(unsigned-bit-shift-right -1 60)
;=> 15
(.indexOf "hello" "l")
;=> 2
(.indexOf "hello" "l" 3)
;=> 3
(.indexOf "abc" 98)
;=> 1
(.lastIndexOf "hello" "l")
;=> 3
(.lastIndexOf "ababa" "ba" 2)
;=> 1
(.lastIndexOf "abc" "" -1)
;=> -1
(.lastIndexOf "abc" "" 4)
;=> 3
(.indexOf [1 2 3] 2)
;=> 1
(.length "abc")
;=> 3
(.substring "hello" 1 3)
;=> "el"
(.contains "abc" "b")
;=> true
(.startsWith "abc" "b" 1)
;=> true
(.endsWith "abc" "c")
;=> true
(.trim " a ")
;=> "a"
(.toUpperCase "a")
;=> "A"
(Math/abs -5)
;=> 5
(Math/floor 1.5)
;=> 1.0
(Math/ceil 1.5)
;=> 2.0
(Math/round 2.5)
;=> 3
(Math/round -2.5)
;=> -2
(Math/pow 2 3)
;=> 8.0
(Math/pow 2 0.5)
;=> 1.4142135623730951
(Math/sqrt 16)
;=> 4.0
(Math/sqrt -1)
;=> ##NaN
(Math/max 1 2)
;=> 2
(Math/pow 0 -1)
;=> ##Inf
(Math/pow 1 ##NaN)
;=> ##NaN
(Integer/parseInt "42")
;=> 42
(Integer/parseInt "10" 16)
;=> 16
(Long/parseLong "-5")
;=> -5
(Double/parseDouble "1.5")
;=> 1.5
(Double/parseDouble " 1.5 ")
;=> 1.5
(Boolean/parseBoolean "yes")
;=> false
(.toEpochDay (java.time.LocalDate/parse "2024-01-02"))
;=> 19724
(str (.plusDays (java.time.LocalDate/parse "2024-02-28") 2))
;=> "2024-03-01"
(.isBefore (java.time.LocalDate/parse "2024-01-01") (java.time.LocalDate/parse "2024-01-02"))
;=> true
(.toEpochMilli (java.time.Instant/parse "2024-01-02T03:04:05.123Z"))
;=> 1704164645123
(str (java.time.Instant/parse "2024-01-02T03:04:05.100Z"))
;=> "2024-01-02T03:04:05.100Z"
(str (java.time.Duration/between (java.time.Instant/parse "2024-01-01T00:00:00Z") (java.time.Instant/parse "2024-01-02T03:04:05.5Z")))
;=> "PT27H4M5.5S"
(.toDays (java.time.Duration/between (java.time.Instant/parse "2024-01-01T00:00:00Z") (java.time.Instant/parse "2024-01-03T00:00:00Z")))
;=> 2
(.getTime (java.util.Date. 5))
;=> 5
(seqable? "a")
;=> true
(seqable? 5)
;=> false
(sequential? [1])
;=> true
(sequential? #{})
;=> false
(associative? {})
;=> true
(counted? "a")
;=> false
(counted? [1])
;=> true
(indexed? [1])
;=> true
(reversible? [1])
;=> true
(coll? {})
;=> true
(coll? "a")
;=> false
(ifn? :a)
;=> true
(ifn? {})
;=> true
(ifn? [1])
;=> true
(fn? :a)
;=> false
(fn? inc)
;=> true
(map-entry? [1 2])
;=> false
(NaN? ##NaN)
;=> true
(infinite? ##-Inf)
;=> true
(nat-int? 0)
;=> true
(pos-int? 1.0)
;=> false
(rational? 1)
;=> true
(double? ##NaN)
;=> true
(boolean nil)
;=> false
(true? 1)
;=> false
(zero? 0.0)
;=> true
(zero? -0.0)
;=> true
(= 0.0 -0.0)
;=> true
(= ##NaN ##NaN)
;=> false
(char? \a)
;=> true
(symbol? 'a)
;=> true
(keyword? :a)
;=> true
(name 'foo)
;=> "foo"
(replace {:a :x} [:a :b])
;=> [:x :b]
(replace [10 20] [0 1])
;=> [10 20]
({:a 1} :a)
;=> 1
({:a 1} :b 2)
;=> 2
(#{1} 1)
;=> 1
(#{1} 2)
;=> nil
([10 20] 1)
;=> 20
(:a nil)
;=> nil
(:a 5)
;=> nil
(:a {:b 1} 2)
;=> 2
(:a [1])
;=> nil
(map #(* % %2) [1 2] [3 4])
;=> [3 8]
(#(vector %1 %&) 1 2 3)
;=> [1 [2 3]]
(#(+ 1 2))
;=> 3
((fn [x] (let [x (inc x)] x)) 1)
;=> 2
(let [])
;=> nil
(do)
;=> nil
(do 1 2)
;=> 2
(let [x 1 x (inc x)] x)
;=> 2
(quote a)
;=> 'a
'a
;=> 'a
(let [f #(+ %1 %3)] (f 1 2 3))
;=> 4
(map (comp str inc) [1 2])
;=> ["2" "3"]
(reduce (fn [m x] (update m x (fnil inc 0))) {} [:a :b :a])
;=> {:a 2 :b 1}
(vec nil)
;=> []
(vec "ab")
;=> ["a" "b"]
(vec {:a 1})
;=> [[:a 1]]
(list 1 2)
;=> [1 2]
(vector)
;=> []
(letfn [(f [x] (inc x))] (f 1))
;=> 2
(let [m {:a 1}] (m :a))
;=> 1
(some #(when (even? %) (* 10 %)) [1 2 3])
;=> 20
(zipmap "ab" [1 2])
;=> {"a" 1 "b" 2}
(apply map vector [[1 2] [3 4]])
;=> [[1 3] [2 4]]
(take-while identity [1 nil 2])
;=> [1]
(apply max-key val {:a 1 :b 5 :c 3})
;=> [:b 5]
(sort-by val {:a 3 :b 1})
;=> [[:b 1] [:a 3]]
(first (sort-by val > {:a 3 :b 1}))
;=> [:a 3]
(map (fn [[k v]] [v k]) {:a 1})
;=> [[1 :a]]
(filter (fn [[k v]] (> v 1)) {:a 1 :b 2})
;=> [[:b 2]]
(into {} (filter (fn [[k v]] (> v 1)) {:a 1 :b 2}))
;=> {:b 2}
(into {} (map (fn [[k v]] [k (inc v)]) {:a 1}))
;=> {:a 2}
(reduce (fn [a [k v]] (+ a v)) 0 {:a 1 :b 2})
;=> 3
(apply concat [[1] [2]])
;=> [1 2]
(apply merge-with + [{:a 1} {:a 2}])
;=> {:a 3}
(every? true? [true true])
;=> true
(int 3.9999)
;=> 3
(Math/abs -2.5)
;=> 2.5
(rem -7 2.5)
;=> -2.0
(quot 10 3)
;=> 3
(mod 0 5)
;=> 0
(mod -1 5)
;=> 4
(abs -3)
;=> 3
(abs 2.5)
;=> 2.5
(boolean 0)
;=> true
(identity nil)
;=> nil
(unreduced (reduced 1))
;=> 1
(not-empty nil)
;=> nil
(ffirst nil)
;=> nil
(clojure.string/split "a b  c" #"\s+")
;=> ["a" "b" "c"]
(clojure.string/split " a b" #"\s+")
;=> ["" "a" "b"]
(reverse nil)
;=> []
(= (range 3) [0 1 2])
;=> true
(count (range 0 10 3))
;=> 4
(last (range 5))
;=> 4
(partition-all 3 nil)
;=> []
(keep identity nil)
;=> []
(mapv vector [1 2] [3])
;=> [[1 3]]
(map-indexed (fn [i x] (* i x)) [5 6])
;=> [0 6]
(conj #{} nil)
;=> #{nil}
(contains? #{nil} nil)
;=> true
(get #{nil} nil :x)
;=> nil
(assoc {} nil 1)
;=> {nil 1}
(disj #{1})
;=> #{1}
(nth [1 2 3] 1.0)
;=> 2
(subs "abcd" 1.0 2.0)
;=> "b"
(take 1.0 [10 20])
;=> [10]
(clojure.set/superset? #{1 2} #{1})
;=> true
(clojure.set/rename-keys {:a 1} {:a :b})
;=> {:b 1}
(clojure.set/map-invert {:a 1})
;=> {1 :a}
(group-by identity "aba")
;=> {"a" ["a" "a"] "b" ["b"]}
(range 3 10 2)
;=> [3 5 7 9]
(comment 1 2)
;=> nil
(reduce + (map count ["a" "bb"]))
;=> 3
(if-not true 1)
;=> nil
(when-not nil 1)
;=> 1
(hash-set)
;=> #{}
(sort compare [3 1])
;=> [1 3]
(map str [:a "b" nil])
;=> [":a" "b" ""]
(map name [:a "b"])
;=> ["a" "b"]
(- 5 1 1)
;=> 3
(* 1.0 1)
;=> 1.0
(/ 10 4.0)
;=> 2.5
(map vals [{:a 1}])
;=> [[1]]
(not= nil nil)
;=> false
(reductions + [1 2 3])
;=> [1 3 6]
(take-nth 2 [1 2 3])
;=> [1 3]
(some? nil)
;=> false
(repeat 2 :x)
;=> [:x :x]
(butlast [])
;=> nil
(mapv (fn [[a b]] (+ a b)) [[1 2] [3 4]])
;=> [3 7]
(doall [1])
;=> [1]
(run! identity [1])
;=> nil
(str (keyword "x"))
;=> ":x"
(format "%tY" (java.util.Date. 0))
;=> "1970"
(do (defn f ([] 0) ([x] x) ([x y & r] [x y r])) [(f) (f 1) (f 1 2 3)])
;=> [0 1 [1 2 [3]]]
(do (defn g "doc" [x] (inc x)) (g 1))
;=> 2
(do (def a 1) (def a 2) a)
;=> 2
(do (defonce b 1) (defonce b 2) b)
;=> 1
(= 'a 'a)
;=> true
(pr-str 'a)
;=> "a"
(compare 'a 'b)
;=> -1
(pr-str #"a\"b")
;=> "#\"a\\\"b\""
(map #(get % :a) [{:a 1}])
;=> [1]
(let [f (fn [& args] (apply + args))] (f 1 2 3))
;=> 6
(apply + (vals {:a 1 :b 2}))
;=> 3
(if (seq []) 1 2)
;=> 2
(boolean [])
;=> true
(get {1 :a} 1.0)
;=> nil
({1 :a} 1.0)
;=> nil
(contains? {1 :a} 1.0)
;=> false
(#{1} 1.0)
;=> nil
(str -0.0)
;=> "-0.0"
(str 123456789.123)
;=> "1.23456789123E8"
(str 1234567.0)
;=> "1234567.0"
(str 12345678.0)
;=> "1.2345678E7"
(str 0.1)
;=> "0.1"
(clojure.string/join ", " (map str [1 2]))
;=> "1, 2"
(empty? "a")
;=> false
(mapcat (fn [x] [x x]) #{1})
;=> [1 1]
(set (map inc #{1 2}))
;=> #{2 3}
(zipmap [] [])
;=> {}
(assoc-in {:a {:b 1}} [:a :c] 2)
;=> {:a {:b 1 :c 2}}
(update {:a 1} :b identity)
;=> {:a 1 :b nil}
(merge {:a {:b 1}} {:a {:c 2}})
;=> {:a {:c 2}}
(dissoc {:a 1} :a)
;=> {}
(let [{:keys [a] :as m :or {a 2}} {}] [a m])
;=> [2 {}]
(let [[x & xs] "abc"] [x xs])
;=> ["a" ["b" "c"]]
(let [[[a b] {:keys [c]}] [[1 2] {:c 3}]] [a b c])
;=> [1 2 3]
(let [{[a b] :xy} {:xy [1 2]}] [a b])
;=> [1 2]
(let [{:keys [:a :b]} {:a 1 :b 2}] [a b])
;=> [1 2]
(let [{n :name {:keys [city]} :address} {:name "x" :address {:city "y"}}] [n city])
;=> ["x" "y"]
((fn [{:keys [a]} [b c]] [a b c]) {:a 1} [2 3])
;=> [1 2 3]
(loop [[x & xs] [1 2 3] acc 0] (if x (recur xs (+ acc x)) acc))
;=> 6
(let [_ 1 _ 2] _)
;=> 2
(do (defn f [& xs] xs) [(f) (f 1)])
;=> [nil [1]]
(do (defn f [{:keys [a b] :or {b 2}}] [a b]) (f {:a 1}))
;=> [1 2]
(for [x [1 2] :let [y (inc x)] :when (even? y)] [x y])
;=> [[1 2]]
(for [x (range 4) :while (< x 2) y (range 2)] [x y])
;=> [[0 0] [0 1] [1 0] [1 1]]
(for [[a b] [[1 2] [3 4]]] (+ a b))
;=> [3 7]
(for [{:keys [a]} [{:a 1} {:a 2}]] a)
;=> [1 2]
(for [x nil] x)
;=> []
(for [x "ab"] x)
;=> ["a" "b"]
(for [x []] x)
;=> []
(doseq [x [1 2] y [3]] [x y])
;=> nil
(some->> [1 2 3] (filter even?) first)
;=> 2
(cond-> {:a 1} true (assoc :b 2) nil (assoc :c 3))
;=> {:a 1 :b 2}
(-> [3 1 2] sort reverse)
;=> [3 2 1]
(-> {:a {:b 1}} (update-in [:a :b] inc) (get-in [:a :b]))
;=> 2
(->> (range 10) (filter odd?) (map #(* % %)) (reduce +))
;=> 165
(as-> [1 2] v (map inc v) (reduce + v))
;=> 5
(if-some [x 0] x :none)
;=> 0
(when-let [[a] [1]] a)
;=> 1
(if-let [x false] 1 2)
;=> 2
(case :a :b 1 :a 2)
;=> 2
(case 1 (1 2 3) :low 4 :mid :high)
;=> :low
(case "x" ("x" "y") 1 2)
;=> 1
(case 'sym sym 1 2)
;=> 1
(case true true 1 false 2)
;=> 1
(case \a \a 1 2)
;=> 1
(cond :else 5)
;=> 5
(cond (> 1 2) 1 (< 1 2) 2)
;=> 2
(and)
;=> true
(or)
;=> nil
(and true false nil)
;=> false
(or false nil 3)
;=> 3
(not nil)
;=> true
(not 0)
;=> false
(if 0 1 2)
;=> 1
(if "" 1 2)
;=> 1
(do (def a 1) (def b (inc a)) (+ a b))
;=> 3
(let [f (fn f [n] (if (zero? n) [] (conj (f (dec n)) n)))] (f 3))
;=> [1 2 3]
(map first {:a 1 :b 2})
;=> [:a :b]
(map second {:a 1 :b 2})
;=> [1 2]
(reduce (fn [acc [k v]] (assoc acc v k)) {} {:a 1 :b 2})
;=> {1 :a 2 :b}
(reduce-kv (fn [m k v] (assoc m k (inc v))) {} {:a 1})
;=> {:a 2}
(reduce-kv (fn [a k v] (reduced k)) nil {:a 1})
;=> :a
(reduce + 1 nil)
;=> 1
(reduce (fn [a b] (* a b)) [1 2 3 4])
;=> 24
(sort-by (juxt :a :b) [{:a 1 :b 2} {:a 1 :b 1}])
;=> [{:a 1 :b 1} {:a 1 :b 2}]
(sort-by :a [{:a 2} {:a nil} {:a 1}])
;=> [{:a nil} {:a 1} {:a 2}]
(sort-by :name [{:name "b"} {:name "a"}])
;=> [{:name "a"} {:name "b"}]
(sort-by identity > [1 3 2])
;=> [3 2 1]
(sort > [1.5 2 0])
;=> [2 1.5 0]
(sort [:b :a :c])
;=> [:a :b :c]
(sort ["B" "a" "C"])
;=> ["B" "C" "a"]
(sort {:b 1 :a 2})
;=> [[:a 2] [:b 1]]
(sort "hello")
;=> ["e" "h" "l" "l" "o"]
(group-by count ["a" "bb" "c"])
;=> {1 ["a" "c"] 2 ["bb"]}
(group-by :k [{:k nil}])
;=> {nil [{:k nil}]}
(partition 3 1 [1 2 3 4 5])
;=> [[1 2 3] [2 3 4] [3 4 5]]
(partition 2 2 ["pad"] [1 2 3])
;=> [[1 2] [3 "pad"]]
(partition-all 3 2 [1 2 3 4 5])
;=> [[1 2 3] [3 4 5] [5]]
(partition-by identity "aabbc")
;=> [["a" "a"] ["b" "b"] ["c"]]
(split-with #(< % 3) [1 2 3 4])
;=> [[1 2] [3 4]]
(split-at 0 [1 2])
;=> [[] [1 2]]
(split-at 5 [1 2])
;=> [[1 2] []]
(interpose ", " ["a" "b"])
;=> ["a" ", " "b"]
(interleave [1 2 3] [:a :b :c] ["x" "y"])
;=> [1 :a "x" 2 :b "y"]
(mapcat reverse [[1 2] [3 4]])
;=> [2 1 4 3]
(mapcat (fn [x] [x (* x x)]) [1 2 3])
;=> [1 1 2 4 3 9]
(keep #(get {:a 1} %) [:a :b])
;=> [1]
(keep {:a 1 :b nil} [:a :b])
;=> [1]
(distinct [:a :b :a])
;=> [:a :b]
(distinct "aab")
;=> ["a" "b"]
(frequencies [:a :b :a])
;=> {:a 2 :b 1}
(frequencies {})
;=> {}
(dedupe [1 1 nil nil])
;=> [1 nil]
(dedupe [])
;=> []
(conj [1] nil)
;=> [1 nil]
(conj #{} 1 1)
;=> #{1}
(conj {} [:a 1] [:b 2])
;=> {:a 1 :b 2}
(into [0] (map inc [1 2]))
;=> [0 2 3]
(into #{1} [2])
;=> #{1 2}
(into {} (map vector [:a :b] [1 2]))
;=> {:a 1 :b 2}
(into {:a 1} {:b 2})
;=> {:a 1 :b 2}
(into [] {:a 1})
;=> [[:a 1]]
(into [] "ab")
;=> ["a" "b"]
(get "abc" 10)
;=> nil
(get [1 2 3] -1)
;=> nil
(get {:a 1} nil)
;=> nil
(get-in [1 [2 3]] [1 0])
;=> 2
(get-in {:a 1} [:a :b])
;=> nil
(get-in {:a 1} [:b :c] :d)
;=> :d
(assoc [] 0 1)
;=> [1]
(assoc {:a 1} :a 2 :b 3)
;=> {:a 2 :b 3}
(update {:a 1} :a + 1 2)
;=> {:a 4}
(update {:a [1]} :a conj 2)
;=> {:a [1 2]}
(update-in {:a 1} [:b :c] (constantly 5))
;=> {:a 1 :b {:c 5}}
(dissoc {:a 1 :b 2 :c 3} :a :b)
;=> {:c 3}
(merge {:a 1} nil {:b 2})
;=> {:a 1 :b 2}
(merge-with + {:a 1 :b 2} {:a 10} {:b 20})
;=> {:a 11 :b 22}
(merge-with into {:a [1]} {:a [2]})
;=> {:a [1 2]}
(select-keys {:a 1 :b nil} [:a :b :c])
;=> {:a 1 :b nil}
(count {:a 1 :b 2})
;=> 2
(count #{1 2})
;=> 2
(empty? "")
;=> true
(every? pos? nil)
;=> true
(some pos? nil)
;=> nil
(some #(when (> % 2) (* % 10)) [1 2 3])
;=> 30
(some {:a 1} [:b :a])
;=> 1
(not-any? nil? [1])
;=> true
(last "abc")
;=> "c"
(first [])
;=> nil
(rest [1])
;=> []
(next nil)
;=> nil
(rest "abc")
;=> ["b" "c"]
(butlast nil)
;=> nil
(take 0 [1])
;=> []
(drop 0 [1])
;=> [1]
(take-while pos? nil)
;=> []
(drop-while pos? [])
;=> []
(drop-last 5 [1])
;=> []
(nth "abc" 5 :z)
;=> :z
(nth [nil] 0 :d)
;=> nil
(subvec [1 2 3 4] 1 3)
;=> [2 3]
(peek nil)
;=> nil
(pop nil)
;=> nil
(max 1 2 3.5)
;=> 3.5
(min 1)
;=> 1
(+ 1.5 1.5)
;=> 3.0
(- 1.5)
;=> -1.5
(* 1.5 2)
;=> 3.0
(rem 7 -2)
;=> 1
(mod 7 -2)
;=> -1
(mod -7 -2)
;=> -1
(mod 7.5 2)
;=> 1.5
(mod -7.5 2)
;=> 0.5
(inc 9223372036854775806)
;=> 9223372036854775807
(abs -0.5)
;=> 0.5
(abs -9)
;=> 9
(== 1 1)
;=> true
(= 1 1 2)
;=> false
(= nil nil)
;=> true
(= [] nil)
;=> false
(= [1 2] [1 2 3])
;=> false
(= {:a [1]} {:a [1]})
;=> true
(= #{[1]} #{[1]})
;=> true
(= "a" "a" "a")
;=> true
(compare "b" "a")
;=> 1
(compare "" "a")
;=> -1
(compare [1 2 3] [1 2])
;=> 1
(str "a" 1 :b 'c nil true 1.5)
;=> "a1:bctrue1.5"
(str [nil])
;=> "[nil]"
(str {nil nil})
;=> "{nil nil}"
(str {:a {:b [1 "x"]}})
;=> "{:a {:b [1 \"x\"]}}"
(str #{})
;=> "#{}"
(str [])
;=> "[]"
(str {})
;=> "{}"
(str "")
;=> ""
(str 1000000.0)
;=> "1000000.0"
(str 9999999.0)
;=> "9999999.0"
(str 10000000.0)
;=> "1.0E7"
(str 0.00012)
;=> "1.2E-4"
(str 1.0e-3)
;=> "0.001"
(str 3.0e10)
;=> "3.0E10"
(str 1e21)
;=> "1.0E21"
(str 1.7976931348623157e308)
;=> "1.7976931348623157E308"
(str 100)
;=> "100"
(str 2147483648)
;=> "2147483648"
(str 0.1 "x")
;=> "0.1x"
(pr-str "tab\there")
;=> "\"tab\\there\""
(pr-str [:a "b" 1.0 nil true])
;=> "[:a \"b\" 1.0 nil true]"
(pr-str {:a 1})
;=> "{:a 1}"
(pr-str #{:a})
;=> "#{:a}"
(pr-str "é")
;=> "\"é\""
(pr-str [])
;=> "[]"
(pr-str :k 'sym)
;=> ":k sym"
(pr-str)
;=> ""
(clojure.string/join "" ["a" "b"])
;=> "ab"
(clojure.string/join ", " [1 2.5 :a nil])
;=> "1, 2.5, :a, "
(clojure.string/join "-" "abc")
;=> "a-b-c"
(clojure.string/join "," [])
;=> ""
(clojure.string/join 1 [1 2])
;=> "112"
(clojure.string/split "a-b_c" #"[-_]")
;=> ["a" "b" "c"]
(clojure.string/split "abc" #"b" 1)
;=> ["abc"]
(clojure.string/split "a,b,c,d" #"," 3)
;=> ["a" "b" "c,d"]
(clojure.string/split "aXbXc" #"X" -1)
;=> ["a" "b" "c"]
(clojure.string/split "aXbX" #"X" -1)
;=> ["a" "b" ""]
(clojure.string/split "hello" #"l")
;=> ["he" "" "o"]
(clojure.string/split "  a" #" ")
;=> ["" "" "a"]
(clojure.string/replace "hello" "l" "L")
;=> "heLLo"
(clojure.string/replace "hello" #"l+" "L")
;=> "heLo"
(clojure.string/replace "hello" #"(h)(e)" "$2$1")
;=> "ehllo"
(clojure.string/replace "a.b.c" "." "")
;=> "abc"
(clojure.string/replace "aaa" #"a" "\\$")
;=> "$$$"
(clojure.string/replace "x" "" "-")
;=> "-x-"
(clojure.string/replace "2024-01-02" #"(\d+)-(\d+)-(\d+)" "$3/$2/$1")
;=> "02/01/2024"
(clojure.string/replace "abc" #"[ac]" {"a" "1" "c" "3"})
;=> "1b3"
(clojure.string/trim "\n a \t")
;=> "a"
(clojure.string/trim "")
;=> ""
(clojure.string/blank? "")
;=> true
(clojure.string/blank? "a")
;=> false
(clojure.string/capitalize "")
;=> ""
(clojure.string/capitalize "über")
;=> "Über"
(clojure.string/upper-case "straße")
;=> "STRASSE"
(clojure.string/lower-case "ÀB")
;=> "àb"
(clojure.string/reverse "")
;=> ""
(clojure.string/starts-with? "abc" "")
;=> true
(clojure.string/index-of "abcabc" "c" 3)
;=> 5
(clojure.string/index-of "abc" "a" -5)
;=> 0
(clojure.string/last-index-of "abcabc" "b" 3)
;=> 1
(clojure.string/last-index-of "abc" "")
;=> 3
(clojure.string/split-lines "a\n\nb")
;=> ["a" "" "b"]
(clojure.string/split-lines "\n")
;=> []
(subs "abc" 0 0)
;=> ""
(subs "abc" 3)
;=> ""
(re-find #"(\d+)-(\d+)" "x10-20y")
;=> ["10-20" "10" "20"]
(re-find #"^a" "ba")
;=> nil
(re-find #"(?m)^b" "a\nb")
;=> "b"
(re-find #"a.c" "a\nc")
;=> nil
(re-find #"(?s)a.c" "a\nc")
;=> "a\nc"
(re-find #"\bfoo\b" "a foo b")
;=> "foo"
(re-find #"[^,]+" ",,ab,")
;=> "ab"
(re-find #"\$(\d+\.\d{2})" "cost $12.50")
;=> ["$12.50" "12.50"]
(re-find #"(?:a|b)+" "xabab")
;=> "abab"
(re-find #"(a)|(b)" "b")
;=> ["b" nil "b"]
(re-find #"\s+" "a  b")
;=> "  "
(re-find #"\w+@\w+\.com" "me@x.com")
;=> "me@x.com"
(re-find #"x*" "aaa")
;=> ""
(re-find #"(?=b)" "ab")
;=> ""
(re-find #"(\w)\1" "hello")
;=> ["ll" "l"]
(re-find #"\Qa.b\E" "a.b")
;=> "a.b"
(re-find #"a{2,3}" "aaaa")
;=> "aaa"
(re-find #"a*?" "aaa")
;=> ""
(re-find #"[\d.]+" "v1.2.3")
;=> "1.2.3"
(re-matches #"(\w+) (\w+)" "hello world")
;=> ["hello world" "hello" "world"]
(re-matches #"a" "ab")
;=> nil
(re-matches #"" "")
;=> ""
(re-seq #"\w+" "the quick fox")
;=> ["the" "quick" "fox"]
(re-seq #"a" "")
;=> nil
(re-seq #"" "ab")
;=> ["" "" ""]
(format "%s %s" "a" "b")
;=> "a b"
(format "no args")
;=> "no args"
(format "%5s|" "ab")
;=> "   ab|"
(format "%-5s|" "ab")
;=> "ab   |"
(format "%05d" -42)
;=> "-0042"
(format "%,d" -1234567)
;=> "-1,234,567"
(format "%.3f" 2.0)
;=> "2.000"
(format "%.0f" 1.5)
;=> "2"
(format "%10.2f|" 3.14159)
;=> "      3.14|"
(format "%-10.2f|" 3.14159)
;=> "3.14      |"
(format "%+.1f" 2.55)
;=> "+2.6"
(format "%.2f%%" 45.678)
;=> "45.68%"
(format "%x" 3735928559)
;=> "deadbeef"
(format "%08X" 255)
;=> "000000FF"
(format "%c" \Z)
;=> "Z"
(format "%b" true)
;=> "true"
(format "%b" "x")
;=> "true"
(format "%s" true)
;=> "true"
(format "%10d|" 42)
;=> "        42|"
(format "%.2e" 12345.678)
;=> "1.23e+04"
(format "%s" 1e10)
;=> "1.0E10"
(format "%s" [1 "a"])
;=> "[1 \"a\"]"
(format "%s" {:a 1})
;=> "{:a 1}"
(format "%s" #{1})
;=> "#{1}"
(format "%s" 'a)
;=> "a"
(format "%d" nil)
;=> "null"
(format "%.1f" 0.05)
;=> "0.1"
(format "%.2f" 1.005)
;=> "1.01"
(format "%.1f" 0.15)
;=> "0.2"
(format "%.3f" 1234.5678)
;=> "1234.568"
(format "%g" 1.5)
;=> "1.50000"
(format "%g" 1234567.0)
;=> "1.23457e+06"
(format "%g" 0.00001)
;=> "1.00000e-05"
(format "%o" 64)
;=> "100"
(format "%h" 10)
;=> "a"
(format "%5c|" \a)
;=> "    a|"
(format "%-5b|" true)
;=> "true |"
(format "%1$s %1$s" "a")
;=> "a a"
(format "%f" 1.0)
;=> "1.000000"
(format "%f" ##Inf)
;=> "Infinity"
(format "%5.1f" ##NaN)
;=> "  NaN"
(format "%,.3f" 9876543.21)
;=> "9,876,543.210"
(format "%(,.2f" -1234.5)
;=> "(1,234.50)"
(bit-and 255 15 7)
;=> 7
(bit-or 1 2)
;=> 3
(bit-shift-right 255 4)
;=> 15
(bit-clear 255 0)
;=> 254
(bit-test 4 2)
;=> true
(bit-shift-left 1 62)
;=> 4611686018427387904
(bit-shift-left 1 63)
;=> -9223372036854775808
(parse-long "")
;=> nil
(parse-long "-42")
;=> -42
(parse-long "1e3")
;=> nil
(parse-long "0042")
;=> 42
(parse-double "-1.5e-3")
;=> -0.0015
(parse-double "1")
;=> 1.0
(parse-double "")
;=> nil
(parse-double "1,5")
;=> nil
(parse-boolean "false")
;=> false
(parse-boolean "")
;=> nil
(name :a-b)
;=> "a-b"
(name "str")
;=> "str"
(keyword "a-b")
;=> :a-b
(symbol "a")
;=> 'a
(name (symbol "a"))
;=> "a"
(map-indexed (fn [i x] [i x]) "ab")
;=> [[0 "a"] [1 "b"]]
(map vector [1 2 3] [4 5 6])
;=> [[1 4] [2 5] [3 6]]
(map (fn [x y z] (+ x y z)) [1] [2] [3])
;=> [6]
(map + [1 2 3] [1 2] [1])
;=> [3]
(mapv + [1 2] [3 4])
;=> [4 6]
(apply map + [[1 2] [3 4]])
;=> [4 6]
(apply str (interpose "," [1 2]))
;=> "1,2"
(apply max 1 [5 3])
;=> 5
(apply hash-map [:a 1])
;=> {:a 1}
(apply vector 1 2 [3])
;=> [1 2 3]
((comp first rest) [1 2])
;=> 2
((comp #(* 2 %) +) 1 2)
;=> 6
((partial map inc) [1 2])
;=> [2 3]
((partial apply +) [1 2])
;=> 3
((complement nil?) nil)
;=> false
((juxt :a :b) {:a 1 :b 2})
;=> [1 2]
((juxt first count) [1 2])
;=> [1 2]
((fnil inc 0) 5)
;=> 6
((fnil conj []) nil 1)
;=> [1]
((every-pred even? pos?) 2)
;=> true
((every-pred even? pos?) -2)
;=> false
((some-fn :a :b) {:c 1})
;=> nil
((constantly nil) 1)
;=> nil
(#(apply + %&) 1 2 3)
;=> 6
(#(- %2 %1) 1 5)
;=> 4
(map #(vector %1) [1])
;=> [[1]]
((fn [] 5))
;=> 5
((fn [x]) 1)
;=> nil
(let [add (fn [a] (fn [b] (+ a b)))] ((add 1) 2))
;=> 3
(let [fs (map (fn [i] #(+ i %)) [1 2])] ((second fs) 10))
;=> 12
(tree-seq map? vals {:a {:b 1}})
;=> [{:a {:b 1}} {:b 1} 1]
(tree-seq sequential? identity [1 [2 [3]]])
;=> [[1 [2 [3]]] 1 [2 [3]] 2 [3] 3]
(clojure.walk/postwalk #(if (keyword? %) (name %) %) {:a [:b {:c 1}]})
;=> {"a" ["b" {"c" 1}]}
(clojure.walk/prewalk #(if (map? %) (assoc % :x 1) %) {:a 1})
;=> {:a 1 :x 1}
(clojure.walk/prewalk #(if (vector? %) (vec (rest %)) %) [1 [2 3]])
;=> [[3]]
(clojure.walk/walk first reverse [[1 2] [3 4]])
;=> [3 1]
(clojure.set/union #{1} #{2} #{3})
;=> #{1 2 3}
(clojure.set/intersection #{1 2 3} #{2 3} #{3})
;=> #{3}
(clojure.set/difference #{1 2 3} #{1} #{2})
;=> #{3}
(clojure.set/union #{1} [2])
;=> #{1 2}
(disj #{1 2 3} 1 2)
;=> #{3}
(contains? #{:a} :b)
;=> false
(contains? {:a 1} :b)
;=> false
(#{:a :b} :a)
;=> :a
(#{nil} nil)
;=> nil
(#{false} false)
;=> false
((set [1 2]) 3)
;=> nil
(set "hello")
;=> #{"e" "h" "l" "o"}
(set [nil 1 nil])
;=> #{1 nil}
(hash-map :a 1 :b 2)
;=> {:a 1 :b 2}
(update-vals {:a 1 :b 2} str)
;=> {:a "1" :b "2"}
(update-keys {"a" 1} keyword)
;=> {:a 1}
(update-keys {:a 1 :b 2} (constantly :x))
;=> {:x 2}
(keys {:a 1 :b 2})
;=> [:a :b]
(first (keys {:a 1}))
;=> :a
(min-key abs -3 2 -1)
;=> -1
(max-key count "a" "bb")
;=> "bb"
(range 0)
;=> []
(range -3)
;=> []
(range 3 0)
;=> []
(range 0 1 0.3)
;=> [0 0.3 0.6 0.8999999999999999]
(range 10 0 -3)
;=> [10 7 4 1]
(range 2.5)
;=> [0 1 2]
(count (range 100))
;=> 100
(reverse (range 3))
;=> [2 1 0]
(vec (range 3))
;=> [0 1 2]
(seq {:a 1})
;=> [[:a 1]]
(seq [nil])
;=> [nil]
(sequential? "a")
;=> false
(string? "a")
;=> true
(number? nil)
;=> false
(integer? 1.0)
;=> false
(float? 1)
;=> false
(boolean? false)
;=> true
(keyword? 'a)
;=> false
(nil? false)
;=> false
(coll? [])
;=> true
(ifn? "a")
;=> false
(zero? 0)
;=> true
(pos? 0)
;=> false
(neg? -0.0)
;=> false
(even? 0)
;=> true
(odd? -1)
;=> true
(true? true)
;=> true
(false? nil)
;=> false
(identity 5)
;=> 5
(infinite? 1.0)
;=> false
(flatten [1 "ab" {:a [1]} [[2]]])
;=> [1 "ab" {:a [1]} 2]
(flatten "abc")
;=> []
(concat [1] "ab" {:a 1})
;=> [1 "a" "b" [:a 1]]
(concat nil nil)
;=> []
(cons [1] [2])
;=> [[1] 2]
(cons 1 #{2})
;=> [1 2]
(list)
;=> []
(list 1 [2])
;=> [1 [2]]
(vector 1 nil)
;=> [1 nil]
(nthrest [1 2 3 4] 2)
;=> [3 4]
(nthnext [1 2] 2)
;=> nil
(boolean "false")
;=> true
(double 5)
;=> 5.0
(float 3)
;=> 3.0
(int 5.5)
;=> 5
(int -5.5)
;=> -5
(Math/abs -3.5)
;=> 3.5
(Math/max 3 5)
;=> 5
(Math/round 3.4)
;=> 3
(Math/floor -1.5)
;=> -2.0
(Math/ceil -1.5)
;=> -1.0
(Math/sqrt 2)
;=> 1.4142135623730951
(Math/pow 2 10)
;=> 1024.0
(Math/log 1)
;=> 0.0
(.toUpperCase "abc")
;=> "ABC"
(.contains "hello" "ell")
;=> true
(.indexOf "hello" "o")
;=> 4
(.lastIndexOf "hello" "z")
;=> -1
(.substring "hello" 2)
;=> "llo"
(.length "")
;=> 0
(.endsWith "a" "")
;=> true
(.indexOf "abc" "" 10)
;=> 3
(Integer/parseInt "-0")
;=> 0
(Integer/parseInt "+5")
;=> 5
(Double/parseDouble "1e400")
;=> ##Inf
(Boolean/parseBoolean nil)
;=> false
(str (java.time.LocalDate/parse "2024-12-31"))
;=> "2024-12-31"
(.toEpochDay (java.time.LocalDate/parse "1969-12-31"))
;=> -1
(str (.minusDays (java.time.LocalDate/parse "2024-03-01") 1))
;=> "2024-02-29"
(.isAfter (java.time.LocalDate/parse "2024-01-02") (java.time.LocalDate/parse "2024-01-02"))
;=> false
(= (java.time.LocalDate/parse "2024-01-02") (java.time.LocalDate/parse "2024-01-02"))
;=> true
(str (java.time.Instant/parse "2024-01-02T03:04:05Z"))
;=> "2024-01-02T03:04:05Z"
(str (java.time.Instant/parse "2024-01-02T03:04:05+02:00"))
;=> "2024-01-02T01:04:05Z"
(.toMillis (java.time.Duration/between (java.time.Instant/parse "2024-01-01T00:00:00Z") (java.time.Instant/parse "2023-12-31T23:59:59Z")))
;=> -1000
(str (java.time.Duration/between (java.time.Instant/parse "2024-01-01T00:00:00Z") (java.time.Instant/parse "2024-01-01T00:00:00Z")))
;=> "PT0S"
(.before (java.util.Date. 1) (java.util.Date. 2))
;=> true
(.after (java.util.Date. 1) (java.util.Date. 2))
;=> false
(= (java.util.Date. 1) (java.util.Date. 1))
;=> true
(.isBefore (java.time.Instant/parse "2024-01-02T03:04:05Z") (java.time.Instant/parse "2024-01-02T03:04:06Z"))
;=> true
(.getTime (java.util.Date. "Thu Jan 01 00:00:01 UTC 1970"))
;=> 1000
(.toEpochDay (.plusDays (java.time.LocalDate/parse "2024-01-01") 1.9))
;=> 19724
(replace {1 :one} [1 2])
;=> [:one 2]
(unreduced 5)
;=> 5
(reduced? (reduced 1))
;=> true
((memoize +) 1 2)
;=> 3
(letfn [(ev? [n] (if (= n 0) true (od? (dec n)))) (od? [n] (if (= n 0) false (ev? (dec n))))] (ev? 10))
;=> true
(let [x 1] (let [x 2] x) x)
;=> 1
(let [a 1 [b c] [a 2]] [a b c])
;=> [1 1 2]
(do (def v [1 2]) (conj v 3) v)
;=> [1 2]
(when-not false 1 2)
;=> 2
(if (not true) 1 2)
;=> 2
(comment anything)
;=> nil
(quote [a b])
;=> '[a b]
'[a 1 "b"]
;=> '[a 1 "b"]
(= 'a (symbol "a"))
;=> true
(do (defn fact [n] (if (<= n 1) 1 (*' n (fact (dec n))))) (fact 20))
;=> 2432902008176640000
(do (defn even2? [n] (or (zero? n) (not (even2? (dec n))))) (even2? 10))
;=> true
(reduce (fn [a x] (if (neg? x) (reduced :neg) (+ a x))) 0 [1 -1 2])
;=> :neg
(loop [n 5 acc 1] (if (zero? n) acc (recur (dec n) (* acc n))))
;=> 120
(loop [xs [1 2 3] s 0] (if (empty? xs) s (recur (rest xs) (+ s (first xs)))))
;=> 6
(loop [] 5)
;=> 5
(get (zipmap [:a] [1]) :a)
;=> 1
(nth [[1 2] [3 4]] 1)
;=> [3 4]
(update [1 2 3] 1 * 10)
;=> [1 20 3]
(assoc-in [[1 2]] [0 1] 9)
;=> [[1 9]]
(reduce merge [{:a 1} {:b 2}])
;=> {:a 1 :b 2}
(map :a [{:a 1} nil])
;=> [1 nil]
(map #(:a %) [{:a {:b 1}}])
;=> [{:b 1}]
(mapv :name [{:name "x"}])
;=> ["x"]
(filter :active [{:active true} {:active nil}])
;=> [{:active true}]
(remove :x [{:x 1} {}])
;=> [{}]
(sort-by (comp - :a) [{:a 1} {:a 2}])
;=> [{:a 2} {:a 1}]
(sort-by second [[1 "b"] [2 "a"]])
;=> [[2 "a"] [1 "b"]]
(first (filter even? [1 2]))
;=> 2
(last (sort [3 1 2]))
;=> 3
(count (filter odd? (range 10)))
;=> 5
(apply + (map :x [{:x 1} {:x 2}]))
;=> 3
(reduce max [3 9 2])
;=> 9
(into (hash-map) [[:a 1]])
;=> {:a 1}
(some (fn [x] (= x 3)) [1 2 3])
;=> true
(every? #(> % 0) [1 2])
;=> true
(clojure.core/inc 1)
;=> 2
(- 0.0)
;=> -0.0
(str (- 0.0))
;=> "-0.0"
(/ 1 3.0)
;=> 0.3333333333333333
(/ 6 3.0)
;=> 2.0
(/ 1.0 3)
;=> 0.3333333333333333
(* 1e200 1e200)
;=> ##Inf
(+ 9007199254740993 0.0)
;=> 9.007199254740992E15
(= 9007199254740993 9007199254740992.0)
;=> false
(< 1 2.5 3)
;=> true
(<= 1 1.0)
;=> true
(> ##Inf 1)
;=> true
(= ##Inf ##Inf)
;=> true
(max ##Inf 1)
;=> ##Inf
(min ##-Inf 1)
;=> ##-Inf
(+ ##Inf 1)
;=> ##Inf
(* 0 ##Inf)
;=> ##NaN
(- ##Inf ##Inf)
;=> ##NaN
(clojure.set/rename-keys {:a 1 :b 2} {:a :b :b :a})
;=> {:a 2 :b 1}
(clojure.set/rename-keys {:a 1 :b 2 :c 3} {:a :b})
;=> {:b 1 :c 3}
(clojure.set/union #{1} [2 3])
;=> [2 3 1]
(clojure.set/union #{1 2} #{2 3} #{3})
;=> #{1 2 3}
(clojure.set/union #{1} [2 3] [4 5])
;=> [4 5 1 2 3]
(nthrest nil 1)
;=> nil
(nthrest [] 1)
;=> []
(keys #{})
;=> nil
(keys "")
;=> nil
(vals #{})
;=> nil
(contains? "abc" 1.0)
;=> true
(contains? "abc" 3)
;=> false
(parse-long "٣")
;=> 3
(format "%(05d" -12)
;=> "(012)"
(format "% 05d" 12)
;=> " 0012"
(format "%-+5d|" 12)
;=> "+12  |"
(->> 5 (fn [x] x) fn?)
;=> true
(clojure.string/last-index-of "abcabc" "b" 4)
;=> 4
(clojure.string/last-index-of "abcabc" "bc" 3)
;=> 1
(clojure.string/last-index-of "abc" "" 9)
;=> 3
(clojure.string/last-index-of "abc" "")
;=> 3
(clojure.string/last-index-of "abc" "" -1)
;=> nil
(clojure.string/last-index-of "ababa" "a" 3.9)
;=> 2
