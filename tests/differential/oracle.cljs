;; Reads one JSON string per line, evaluates it, writes its value as canonical JSON: numbers are
;; doubles, strings {"$str"}, keywords ":k", maps and sets sorted by their own canonical text.
(ns oracle
  (:require ["readline" :as readline]
            [clojure.set]
            [clojure.string]
            [clojure.walk]))

(defn text [x] (js/JSON.stringify x))

(defn canon [x]
  (cond
    (nil? x) nil
    (boolean? x) x
    (number? x) (cond (js/Number.isNaN x) #js {"$num" "NaN"}
                      (= x ##Inf) #js {"$num" "Inf"}
                      (= x ##-Inf) #js {"$num" "-Inf"}
                      :else x)
    (string? x) #js {"$str" x}
    (keyword? x) (str x)
    (map? x) #js {"$map" (to-array (sort-by text (map (fn [[k v]] #js [(canon k) (canon v)]) x)))}
    (set? x) #js {"$set" (to-array (sort-by text (map canon x)))}
    (sequential? x) (to-array (map canon x))
    :else #js {"$other" (str (type x))}))

(defn answer [line]
  (try
    (text #js {"value" (canon (eval (read-string (js/JSON.parse line))))})
    (catch :default error
      (text #js {"error" (str (.-message error))}))))

(.on (.createInterface readline #js {:input js/process.stdin})
     "line" (fn [line] (println (answer line))))
