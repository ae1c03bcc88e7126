;; oracle.cljs for Clojure on the JVM, which has no JSON: one string per line in, one line out.
(ns oracle
  (:require [clojure.set]
            [clojure.string :as string]
            [clojure.walk]))

(defn quoted [s]
  (let [escape (fn [c]
                 (cond (= c \") "\\\""
                       (= c \\) "\\\\"
                       (or (< (int c) 32) (> (int c) 126)) (format "\\u%04x" (int c))
                       :else (str c)))]
    (str \" (apply str (map escape s)) \")))

(defn array [texts] (str "[" (string/join "," texts) "]"))

(defn number [x]
  (let [d (double x)]
    (cond (Double/isNaN d) "{\"$num\":\"NaN\"}"
          (Double/isInfinite d) (if (pos? d) "{\"$num\":\"Inf\"}" "{\"$num\":\"-Inf\"}")
          (integer? x) (str x)
          :else (str d))))

(defn canon [x]
  (cond
    (nil? x) "null"
    (boolean? x) (str x)
    (number? x) (number x)
    (or (string? x) (char? x)) (str "{\"$str\":" (quoted (str x)) "}")
    (keyword? x) (quoted (str x))
    (map? x) (str "{\"$map\":" (array (sort (map (fn [[k v]] (array [(canon k) (canon v)])) x))) "}")
    (set? x) (str "{\"$set\":" (array (sort (map canon x))) "}")
    (sequential? x) (array (map canon x))
    :else (str "{\"$other\":" (quoted (str (type x))) "}")))

(defn answer [line]
  (try
    (str "{\"value\":" (canon (eval (read-string (read-string line)))) "}")
    (catch Throwable error
      (str "{\"error\":" (quoted (str (.getMessage error))) "}"))))

(in-ns 'user)
(doseq [line (line-seq (java.io.BufferedReader. *in*))]
  (println (oracle/answer line))
  (flush))
