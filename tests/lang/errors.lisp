;; Every refusal has a code and the line and column of the innermost form.

(sum ["a"])
;! type_error 1:1
(filter (where :a ~ 1) [])
;! parse_error 1:19
(where)
;! invalid_arity 1:1
(where :a = )
;! invalid_arity 1:1
(int nil)
;! type_error 1:1
(json/generate-string ##Inf)
;! type_error 1:1
(json/generate-string [1 #{2}])
;! type_error 1:1
(json/generate-string :a)
;! type_error 1:1
(pmap (fn [x] (return x)) [1])
;! pmap_error 1:1
(pmap (fn [x] (/ x 0)) [1 2])
;! arithmetic_error 1:15
(task nil 5)
;! type_error 1:1
(task "a")
;! invalid_arity 1:1
(step-done "1")
;! arity_error 1:1
(tool/nope {})
;! unknown_tool 1:1
data
;! unbound_var 1:1
tool/x
;! invalid_form 1:1
tool/x/y
;! invalid_form 1:1
(foo 1) (bar 2)
;! unbound_var 1:2
(prinltn "a")
;! unbound_var 1:2
(defn f [x] (inc x)) (f 1 2)
;! arity_error 1:22
(let [f (fn [x] x)] (f))
;! arity_error 1:21
(map (fn [x y] x) [1])
;! arity_error 1:1
((fn [a b & c] a) 1)
;! arity_error 1:1
(f_oo 1)
;! unbound_var 1:2
(clojure.string/foo "a")
;! unbound_var 1:2
(nope/foo 1)
;! unbound_var 1:2
(Math/foo 1)
;! unbound_var 1:2
(LocalDate/foo "x")
;! unbound_var 1:2
#(%1 %21)
;! invalid_placeholder 1:1
(+ % 1)
;! invalid_placeholder 1:4
#(map #(inc %) %)
;! parse_error 1:7
(let [x])
;! invalid_form 1:1
(let (x 1) x)
;! invalid_form 1:1
(loop [x 1] (recur 1 2))
;! arity_error 1:13
(map (fn [x] (recur)) [1])
;! arity_error 1:14
(+ 1 (recur))
;! invalid_form 1:6
(loop [i 0] (+ 1 (recur (inc i))))
;! invalid_form 1:18
(fn x)
;! invalid_form 1:1
(fn)
;! invalid_form 1:1
(defn)
;! invalid_form 1:1
(def)
;! invalid_arity 1:1
(if-let [a 1 b 2] a)
;! invalid_form 1:1
(cond 1)
;! invalid_arity 1:1
(@x)
;! parse_error 1:2
`x
;! parse_error 1:1
'(1 2)
;! invalid_form 1:2
^{:a 1} x
;! parse_error 1:1
1/2
;! parse_error 1:1
0x10
;! parse_error 1:1
10N
;! parse_error 1:1
1.5M
;! parse_error 1:1
"abc
;! parse_error 1:1
{:a}
;! parse_error 1:1
#{1 1}
;! duplicate_key 1:5
{:a 1 :a 2}
;! duplicate_key 1:7
[1 2
;! parse_error 1:1
(1 2)
;! not_callable 1:1
(true)
;! not_callable 1:1
:a/b
;! parse_error 1:1
::a
;! parse_error 1:1
\ab
;! parse_error 1:1
##Foo
;! parse_error 1:1
#'undefined-x
;! unbound_var 1:3
(defn rr [n] (inc (rr n))) (rr 1)
;! memory_exceeded
(range)
;! arity_error 1:1
(reduce (fn [a _] (* a a)) 10 (range 100))
;! memory_exceeded
(loop [s "a" i 0] (if (< i 40) (recur (str s s) (inc i)) (count s)))
;! memory_exceeded 1:39
(re-find #"(a+)+$" "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab")
;! type_error 1:10
(format "%99999999d" 1)
;! memory_exceeded 1:1
(count (combinations (range 40) 20))
;! memory_exceeded 1:8
(for [x [1 2] :foo 1] x)
;! invalid_form 1:15
(for [:when true] 1)
;! invalid_form 1:1
(let [{:keys a} {}] a)
;! unsupported_pattern 1:14
(let [[a b] 5] a)
;! destructure_error 1:7
(let [[a &] [1]] a)
;! unsupported_pattern 1:10
(let [{:foo [a]} {}] a)
;! unsupported_pattern 1:8
(as-> 1)
;! invalid_arity 1:1
(-> )
;! invalid_arity 1:1
(apply)
;! arity_error 1:1
(apply +)
;! arity_error 1:1
(apply + 1)
;! type_error 1:1
(.getTime (java.time.Instant/parse "1970-01-01T00:00:01Z"))
;! type_error 1:1
(quote)
;! invalid_arity 1:1
(when false (def hidden 1)) hidden
;! unbound_var 1:29
(keyword "a b")
;! type_error 1:1
(sort-by :a [{:a "x"} {:a 1}])
;! type_error 1:1
(< nil 1)
;! type_error 1:1
(hash-map 1)
;! arity_error 1:1
(assoc {:a 1} :b)
;! arity_error 1:1
(update {} :a)
;! arity_error 1:1
(merge {:a 1} 5)
;! type_error 1:1
(into {} [1])
;! type_error 1:1
(nth {:a 1} 0)
;! type_error 1:1
(take "a" [1])
;! type_error 1:1
(reduce)
;! arity_error 1:1
(map inc)
;! arity_error 1:1
(map inc 5)
;! type_error 1:1
(filter 5 [1])
;! not_callable 1:1
(get-in {:a 1} :a)
;! type_error 1:1
(java.util.Date. "nonsense")
;! type_error 1:1
(java.util.Date. "Thu Foo 01 00:00:01 UTC 1970")
;! type_error 1:1
(java.util.Date. "Thu Jan 41 00:00:01 UTC 1970")
;! type_error 1:1
(java.util.Date. :a)
;! type_error 1:1
(java.time.Instant/parse "2024-13-01T00:00:00Z")
;! type_error 1:1
(java.time.Instant/parse "2024-01-01T25:00:00Z")
;! type_error 1:1
(java.time.Instant/parse 5)
;! type_error 1:1
(LocalDate/parse nil)
;! type_error 1:1
(.plusDays (LocalDate/parse "9999-12-31") 1)
;! arithmetic_error 1:1
(.plusDays 5 1)
;! type_error 1:1
(.toDays 5)
;! type_error 1:1
(.toEpochMilli 5)
;! type_error 1:1
(.before 1 2)
;! type_error 1:1
(.isAfter (LocalDate/parse "2024-01-01") 5)
;! type_error 1:1
(Duration/between 1 2)
;! type_error 1:1
(format "%tQ" 5)
;! type_error 1:1
(format "%c" "ab")
;! type_error 1:1
(format "%h" [1])
;! type_error 1:1
(format 5)
;! type_error 1:1
(format "100%")
;! type_error 1:1
(char -1)
;! type_error 1:1
(symbol 5)
;! type_error 1:1
(name 5)
;! type_error 1:1
(clojure.string/replace 5 5 5)
;! type_error 1:1
(clojure.string/replace "a" #"a" 5)
;! not_callable 1:1
(blank? 5)
;! type_error 1:1
(join 5)
;! type_error 1:1
(split-lines 5)
;! type_error 1:1
(includes? nil "a")
;! type_error 1:1
(bit-and 1 :a)
;! type_error 1:1
(bit-and 99999999999999999999 1)
;! type_error 1:1
(Math/sqrt "a")
;! type_error 1:1
(Integer/parseInt "zz" 99)
;! type_error 1:1
(Boolean/parseBoolean 5)
;! type_error 1:1
(long ##Inf)
;! arithmetic_error 1:1
(float ##Inf)
;! arithmetic_error 1:1
(quot ##Inf 2)
;! arithmetic_error 1:1
(mod 1 ##NaN)
;! arithmetic_error 1:1
(/ 1 "a")
;! type_error 1:1
(- "a")
;! type_error 1:1
(apply - [1 nil])
;! type_error 1:1
(max 1 :a)
;! type_error 1:1
(abs "a")
;! type_error 1:1
(walk (fn [x] 5) identity {:a 1})
;! type_error 1:1
(into 5 [1])
;! type_error 1:1
(into [] inc [1])
;! arity_error 1:1
(reduce-kv + 0 5)
;! type_error 1:1
(merge-with + {:a 1} 5)
;! type_error 1:1
(find 5 1)
;! type_error 1:1
(keys 5)
;! type_error 1:1
(key 5)
;! type_error 1:1
(assoc [1] 9 9)
;! type_error 1:1
(assoc {} 1 2 3)
;! arity_error 1:1
(disj [1] 1)
;! type_error 1:1
(difference [1] #{1})
;! type_error 1:1
(subset? [1] #{1})
;! type_error 1:1
(union 1 #{2})
;! type_error 1:1
(pop {})
;! type_error 1:1
(peek {})
;! type_error 1:1
(subvec {} 1)
;! type_error 1:1
(take-nth 0 [1])
;! type_error 1:1
(partition 0 [1])
;! type_error 1:1
(partition-all 0 [1])
;! type_error 1:1
(range 0 5 0)
;! memory_exceeded 1:1
(range 0 1e9)
;! memory_exceeded 1:1
(sort :up [1 2])
;! type_error 1:1
(fnil inc)
;! arity_error 1:1
(fnil inc 1 2 3 4)
;! arity_error 1:1
((where 5) {})
;! type_error 1:2
(re-find 5 "a")
;! type_error 1:1
(re-find #"a" 5)
;! type_error 1:1
(re-find "a(" "a")
;! type_error 1:1
(re-find #"(?(1)a|b)" "b")
;! type_error 1:10
(json/generate-string {1.5 2})
;! type_error 1:1
([1 2] :a)
;! type_error 1:1
(let [[a :foo b] [1]] a)
;! unsupported_pattern 1:10
(let [{:keys [5]} {}] 1)
;! unsupported_pattern 1:15
(let [{:or 5} {}] 1)
;! unsupported_pattern 1:12
(let [5 6] 1)
;! unsupported_pattern 1:7
(let [a/b 1] 1)
;! invalid_form 1:7
(let [& 1] 1)
;! unsupported_pattern 1:7
(fn [a &] a)
;! invalid_form 1:5
(fn [a & b c] a)
;! invalid_form 1:5
(fn ([a] 1) ([b] 2))
;! invalid_form 1:1
(letfn [f] 1)
;! invalid_form 1:1
(letfn 5)
;! invalid_form 1:1
(if-let x 1)
;! invalid_form 1:1
(if-let)
;! invalid_arity 1:1
(when-let [x] 1)
;! invalid_form 1:1
(when-first 5)
;! invalid_form 1:1
(when-first [x] 1)
;! invalid_form 1:1
(case)
;! invalid_arity 1:1
(case 1 1 :a 1 :b)
;! duplicate_key 1:14
(condp)
;! invalid_arity 1:1
(cond-> 1 true nil)
;! not_callable 1:16
(some-> 1 nil)
;! not_callable 1:11
(for [x [1]] 1 2)
;! invalid_arity 1:1
(for [x [1] :let 5] x)
;! invalid_form 1:13
(doseq 5)
;! invalid_form 1:1
(def 5 1)
;! invalid_form 1:1
(def a/b 1)
;! invalid_form 1:1
(def x 1 2)
;! invalid_arity 1:1
(defn f)
;! invalid_form 1:1
(defn 5 [x] x)
;! invalid_form 1:1
#'5
;! invalid_form 1:1
(quote (1 2))
;! invalid_form 1:8
(try 1)
;! invalid_form 1:1
(atom 1)
;! unbound_var 1:2
(ns foo)
;! invalid_form 1:1
(some-fn)
;! arity_error 1:1
(symbol "a b")
;! type_error 1:1
(symbol "nil")
;! type_error 1:1
(symbol "1a")
;! type_error 1:1
(symbol "a\n(b)")
;! type_error 1:1
(let [{:keys [a]} [1 2]] a)
;! destructure_error 1:7
((fn [{:strs [a] :or {a 1}}] a) [])
;! destructure_error 1:7
