;; What Clojure 1.11 refuses, and with which code we do.

(/ 1 0)
;! arithmetic_error
(-)
;! arity_error
(int 2147483648)
;! arithmetic_error
(cond-> 1 true)
;! invalid_arity
(-> 1 nil)
;! not_callable
(count 5)
;! type_error
(range "1" 3)
;! type_error
(range nil)
;! type_error
(sort [1 "a"])
;! type_error
(conj {:a 1} [1 2 3])
;! type_error
(conj 5 1)
;! type_error
(empty? 5)
;! type_error
(assoc [1] 5 3)
;! type_error
(assoc {} :a)
;! arity_error
(keys [1 2])
;! type_error
(key [:a 1])
;! type_error
(contains? 5 1)
;! type_error
(hash-map :a)
;! arity_error
(apply max [])
;! arity_error
(juxt)
;! arity_error
(name nil)
;! type_error
(clojure.string/replace "a1" #"\d" "$$")
;! type_error
(format "%d" "x")
;! type_error
(format "%f" 1)
;! type_error
(format "%d" 1.5)
;! type_error
(format "%s")
;! type_error
(format "%y" 1)
;! type_error
(bit-and 7)
;! arity_error
(.substring "hello" 9)
;! type_error
(Integer/parseInt "x")
;! type_error
(Integer/parseInt "2147483648")
;! type_error
(java.time.LocalDate/parse "2024-02-30")
;! type_error
(java.time.Instant/parse "2024-01-02")
;! type_error
([10 20] 5)
;! type_error
(max-key val {:a 1} {:b 2})
;! type_error
(min)
;! arity_error
(max "a" 1)
;! type_error
(< "a" "b")
;! type_error
(+ 1 nil)
;! type_error
(+ :a)
;! type_error
(inc nil)
;! type_error
(nil 1)
;! not_callable
(5 1)
;! not_callable
("a" 1)
;! not_callable
(:a)
;! arity_error
(:a {} 1 2)
;! arity_error
(.foo "a")
;! unbound_var
(clojure.string/index-of "a" nil)
;! type_error
(let [[x y] {:a 1}] x)
;! destructure_error
(nth '(1 2) 5)
;! invalid_form
(compare :a "a")
;! type_error
(compare #{1} #{1})
;! type_error
(re-find #"[" "a")
;! type_error
(format "%q" 1)
;! type_error
(bit-and 1.5 1)
;! type_error
(#(vector %))
;! arity_error
(.substring "hello" 3 2)
;! type_error
(Long/parseLong "9223372036854775808")
;! type_error
(Long/parseLong " 1")
;! type_error
(Integer/parseInt nil)
;! type_error
(Double/parseDouble "x")
;! type_error
(.isBefore (java.util.Date. 0) (java.util.Date. 1000))
;! type_error
(java.time.Duration/between (java.util.Date. 0) (java.util.Date. 0))
;! type_error
(distinct #{1})
;! type_error
(contains? "abc" "b")
;! type_error
(subs "abc" 1 nil)
;! type_error
(-> 5 #(+ % 1))
;! invalid_form
(-> 5 (fn [x] x))
;! invalid_form
(cond-> 5 true #(+ % 1))
;! invalid_form
(format "%-05d" 1)
;! type_error
(format "%05s" "a")
;! type_error
(format "%+s" "a")
;! type_error
(format "%.2d" 1)
;! type_error
(format "%0d" 1)
;! type_error
(format "%+ d" 1)
;! type_error
(format "%5n")
;! type_error
(format "%#d" 1)
;! type_error
