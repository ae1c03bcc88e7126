"""Typed random programs in the part of Clojure that the language has in common with it.

Everything the language does otherwise on purpose is not generated: out-of-range access, positional
access to maps and sets, `contains?` of a vector, order of maps and sets, what `conj` does to a
sequence that is no vector, integers beyond a double, division, and text of a float.
"""

import re
from collections.abc import Callable

from hypothesis import strategies as st

Draw = st.DrawFn
Env = dict[str, tuple[str, ...]]
Make = Callable[[Draw, int, Env], str]

# Kinds: I int, F number, B boolean, S string, K keyword, N int or nil, V vector of ints,
# Q sequence of ints, W vector of strings, M map of keyword to int, X set of ints.
KINDS = "IFBSKNVQWMX"
KEYS = (":a", ":b", ":c", ":d-e")
WORDS = ("", "a", "b", "ab", "ba", "Abc", "x y", " pad ", "a,b,,", "é", "aXbX", "12", "-7")


@st.composite
def programs(draw: Draw) -> str:
    """A closed expression, often one whose value shows its whole shape."""
    depth = draw(st.integers(0, 3))
    if draw(st.booleans()):
        return fill(draw, draw(st.sampled_from(SHAPES)), depth, {})
    return make(draw, draw(st.sampled_from(KINDS)), depth + 1, {})


def make(draw: Draw, kind: str, depth: int, env: Env) -> str:
    """An expression of a kind: a literal or a variable at depth 0, else one of the kind's rows."""
    if depth <= 0:
        names = env.get(kind, ())
        if names and draw(st.booleans()):
            return draw(st.sampled_from(names))
        return literal(draw, kind)
    rows = ROWS[kind]
    index = draw(st.integers(0, len(rows) + len(FORMS) - 1))
    if index < len(rows):
        return fill(draw, rows[index], depth - 1, env)
    row = FORMS[index - len(rows)]
    return row(draw, kind, depth - 1, env)


def fill(draw: Draw, template: str, depth: int, env: Env) -> str:
    """A template with each `~K` replaced by an expression of kind K, and `~n` by a small number.

    `~fIB` is a function from an int to a boolean.
    """
    parts = template.split("~")
    out = [parts[0]]
    for part in parts[1:]:
        if part[0] == "n":
            out += [str(draw(st.integers(0, 4))), part[1:]]
        elif part[0] == "p":
            out += [str(draw(st.integers(1, 4))), part[1:]]
        elif part[0] == "f":
            out += [function(draw, part[1], part[2], depth, env), part[3:]]
        elif part[0] == "k":
            out += [draw(st.sampled_from(KEYS)), part[1:]]
        else:
            out += [make(draw, part[0], depth, env), part[1:]]
    return "".join(out)


def literal(draw: Draw, kind: str) -> str:
    match kind:
        case "I":
            return str(draw(st.integers(-9, 99)))
        case "F":
            return f"{draw(st.integers(-9, 99))}.{draw(st.sampled_from(['25', '5', '75']))}"
        case "B":
            return draw(st.sampled_from(["true", "false"]))
        case "S":
            return '"' + draw(st.sampled_from(WORDS)) + '"'
        case "K":
            return draw(st.sampled_from(KEYS))
        case "N":
            return draw(st.sampled_from(["nil", "0", "5"]))
        case "V" | "Q":
            return f"[{' '.join(map(str, draw(st.lists(st.integers(-9, 20), max_size=5))))}]"
        case "W":
            words = draw(st.lists(st.sampled_from(WORDS), max_size=4))
            return "[" + " ".join(f'"{word}"' for word in words) + "]"
        case "M":
            keys = draw(st.lists(st.sampled_from(KEYS), unique=True))
            return "{" + " ".join(f"{key} {draw(st.integers(-9, 20))}" for key in keys) + "}"
        case "X":
            items = draw(st.lists(st.integers(-9, 20), max_size=4, unique=True))
            return "#{" + " ".join(map(str, items)) + "}"
        case other:
            raise AssertionError(other)


def function(draw: Draw, given: str, result: str, depth: int, env: Env) -> str:
    """A function of one argument: a known one, or one written here that may use its argument."""
    known = KNOWN.get(given + result, ())
    if known and draw(st.booleans()):
        return draw(st.sampled_from(known))
    name = fresh(env)
    body = make(draw, result, min(depth, 1), bind(env, given, name))
    used = re.search(rf"\b{name}\b", body)
    if used and draw(st.booleans()) and not re.search(r"#\(|%|\(fn", body):
        return "#" + re.sub(rf"\b{name}\b", "%", body if body[0] == "(" else f"(do {body})")
    return f"(fn [{name}] {body})"


def fresh(env: Env) -> str:
    return f"v{sum(len(names) for names in env.values())}"


def bind(env: Env, kind: str, name: str) -> Env:
    return {**env, kind: (*env.get(kind, ()), name)}


KNOWN = {
    "II": ("inc", "dec", "-", "identity", "abs"),
    "IB": (
        "odd?",
        "even?",
        "pos?",
        "neg?",
        "zero?",
        "(partial < 3)",
        "(complement odd?)",
        "#{1 2}",
    ),
    "SS": ("clojure.string/upper-case", "clojure.string/trim", "str", "identity"),
    "SI": ("count", "(comp inc count)"),
    "SB": ("empty?", "clojure.string/blank?", "seq", "string?"),
    "IS": ("str", "(comp str inc)"),
    "IK": ("(constantly :a)",),
}

ROWS: dict[str, tuple[str, ...]] = {
    "I": (
        "(+ ~I ~I)",
        "(- ~I ~I)",
        "(- ~I)",
        "(* ~I ~n)",
        "(quot ~I ~p)",
        "(rem ~I ~p)",
        "(mod ~I ~p)",
        "(mod ~I -3)",
        "(max ~I ~I ~I)",
        "(min ~I ~I)",
        "(abs ~I)",
        "(count ~V)",
        "(count ~Q)",
        "(count ~S)",
        "(count ~M)",
        "(count ~X)",
        "(reduce + ~Q)",
        "(reduce + ~I ~Q)",
        "(reduce (fn [acc x] (if (> x 9) (reduced acc) (+ acc x))) 0 ~Q)",
        "(apply + ~Q)",
        "(apply max ~I ~Q)",
        "(get ~M ~k ~I)",
        "(get ~V ~n ~I)",
        "(nth ~V ~n ~I)",
        "(~k ~M ~I)",
        "(or (first ~Q) ~I)",
        "(or ~N ~I)",
        "(if-let [x (seq ~Q)] (first x) ~I)",
        "(if-some [x ~N] x ~I)",
        "(reduce-kv (fn [acc _ v] (+ acc v)) 0 ~M)",
        "(compare ~I ~I)",
        "(if (neg? (compare ~S ~S)) 0 1)",
        "(bit-and ~n ~n)",
        "(bit-or ~n ~n)",
        "(bit-xor ~n ~n)",
        "(bit-shift-left ~n ~n)",
        "(bit-shift-right ~n ~n)",
        "(-> ~I inc (* 2))",
        "(->> ~Q (filter odd?) (map inc) (reduce +))",
        "((comp inc inc) ~I)",
        "((partial + 1) ~I)",
        "(~fII ~I)",
        "(let [[a b] ~V] (+ (or a 0) (or b 1)))",
        "(let [{:keys [a b] :or {b ~I}} ~M] (+ (or a 0) b))",
        "(let [{x :a :as m} ~M] (+ (count m) (or x 2)))",
        "(let [[a & more] ~V] (+ (or a 0) (count more)))",
        "(loop [i 0 acc ~I] (if (< i ~n) (recur (inc i) (+ acc i)) acc))",
        "(case ~K :a ~I (:b :c) ~I ~I)",
        "(condp = ~I 1 ~I 2 ~I ~I)",
        "(cond-> ~I ~B inc ~B (* 2))",
        "(as-> ~I x (+ x x))",
        "(or (some-> ~N inc) ~I)",
        "((fnil inc 5) ~N)",
        "(apply min-key abs ~I ~V)",
        "(or (first (sort ~V)) 0)",
    ),
    "F": (
        "(+ ~F ~I)",
        "(- ~F ~F)",
        "(* ~F ~n)",
        "(max ~F ~I)",
        "(min ~F ~F)",
        "(abs ~F)",
        "(reduce + ~F ~Q)",
        "(if ~B ~F ~I)",
    ),
    "B": (
        "(= ~I ~I)",
        "(= ~Q ~V)",
        "(= ~M ~M)",
        "(= ~X ~X)",
        "(not= ~S ~S)",
        "(< ~I ~I)",
        "(<= ~I ~I ~I)",
        "(> ~F ~I)",
        "(>= ~I ~I)",
        "(== ~I ~I)",
        "(not ~B)",
        "(and ~B ~B)",
        "(or ~B ~B)",
        "(boolean (and ~N ~B))",
        "(nil? ~N)",
        "(some? ~N)",
        "(empty? ~Q)",
        "(contains? ~M ~k)",
        "(contains? ~X ~I)",
        "(every? ~fIB ~Q)",
        "(not-any? ~fIB ~Q)",
        "(not-every? ~fIB ~Q)",
        "(boolean (some ~fIB ~Q))",
        "(boolean (some #{1 2 3} ~Q))",
        "(clojure.string/starts-with? ~S ~S)",
        "(clojure.string/ends-with? ~S ~S)",
        "(clojure.string/includes? ~S ~S)",
        "(clojure.string/blank? ~S)",
        "(even? ~I)",
        "(neg? ~F)",
        "(zero? ~I)",
        "(string? ~S)",
        "(keyword? ~K)",
        "(map? ~M)",
        "(set? ~X)",
        "(vector? ~V)",
        "(coll? ~M)",
        "(sequential? ~Q)",
        "(distinct? ~I ~I ~I)",
        "(boolean (~fIB ~I))",
        "((every-pred pos? even?) ~I)",
        "(boolean ((some-fn pos? even?) ~I))",
        "(= ~K ~K)",
    ),
    "S": (
        "(str ~S ~S)",
        "(str ~I ~K ~B ~N)",
        "(str ~V)",
        "(pr-str ~W)",
        "(pr-str ~N ~K)",
        "(name ~K)",
        "(clojure.string/upper-case ~S)",
        "(clojure.string/lower-case ~S)",
        "(clojure.string/trim ~S)",
        "(clojure.string/triml ~S)",
        "(clojure.string/trimr ~S)",
        '(clojure.string/join "," ~V)',
        "(clojure.string/join ~W)",
        "(clojure.string/join ~S ~W)",
        '(clojure.string/replace ~S "a" ~S)',
        '(clojure.string/replace ~S #"([ab])" "<$1>")',
        '(clojure.string/replace ~S #"[a-z]" (fn [m] (str m m)))',
        "(let [s ~S] (subs s (min ~n (count s))))",
        "(let [s ~S] (subs s 0 (min ~n (count s))))",
        "(apply str (reverse ~S))",
        "(apply str (interpose ~S ~W))",
        "(or (first ~W) ~S)",
        "(get {:a ~S} ~k ~S)",
        '(or (re-find #"[a-c]+" ~S) ~S)',
        '(str (re-find #"(a)(b)?" ~S))',
        "(reduce str ~W)",
        "(cond ~B ~S ~B ~S :else ~S)",
    ),
    "K": ("(keyword (name ~K))", "(or (some #{:a :b} [~K ~K]) ~K)"),
    "N": (
        "(get ~M ~k)",
        "(~k ~M)",
        "(~M ~k)",
        "(first ~Q)",
        "(second ~Q)",
        "(last ~Q)",
        "(peek ~V)",
        "(get ~V ~n)",
        "(some ~fII ~Q)",
        "(first (filter ~fIB ~Q))",
        "(when ~B ~I)",
        "(when-let [x ~N] (inc x))",
        "(when-some [x ~N] (inc x))",
        "(when-not ~B ~I)",
        "(when-first [x ~Q] (inc x))",
        "(clojure.string/index-of ~S ~S)",
        "(clojure.string/last-index-of ~S ~S)",
        "(and ~N ~I)",
        "(some-> ~M ~k inc)",
        "(some->> ~N (+ 2))",
        "(get-in {:a ~M} [:a ~k])",
        "(#{1 2 3} ~I)",
        "(parse-long ~S)",
        "(not-empty nil)",
    ),
    "V": (
        "(conj ~V ~I)",
        "(conj ~V ~I ~I)",
        "(into ~V ~Q)",
        "(vec ~Q)",
        "(mapv ~fII ~Q)",
        "(mapv + ~Q ~Q)",
        "(filterv ~fIB ~Q)",
        "(vector ~I ~I)",
        "[~I ~I]",
        "(let [v ~V] (if (seq v) (pop v) v))",
        "(let [v ~V] (if (seq v) (assoc v 0 ~I) v))",
        "(let [v ~V] (subvec v 0 (min ~n (count v))))",
        "(let [v ~V] (if (seq v) (update v 0 inc) v))",
        "(reduce conj ~V ~Q)",
        "(reduce (fn [acc x] (if (odd? x) (conj acc x) acc)) [] ~Q)",
        "(vec (sort (keys (assoc {1 2} ~I 3))))",
        "(into [] (sort ~X))",
    ),
    "Q": (
        "~V",
        "(map ~fII ~Q)",
        "(map + ~Q ~Q)",
        "(filter ~fIB ~Q)",
        "(remove ~fIB ~Q)",
        "(take ~n ~Q)",
        "(drop ~n ~Q)",
        "(take-while ~fIB ~Q)",
        "(drop-while ~fIB ~Q)",
        "(take-last ~n ~Q)",
        "(drop-last ~n ~Q)",
        "(drop-last ~Q)",
        "(butlast ~Q)",
        "(rest ~Q)",
        "(next ~Q)",
        "(nthrest ~Q ~n)",
        "(nthnext ~Q ~n)",
        "(cons ~I ~Q)",
        "(concat ~Q ~Q)",
        "(reverse ~Q)",
        "(sort ~Q)",
        "(sort > ~Q)",
        "(sort-by - ~Q)",
        "(sort-by ~fII ~Q)",
        "(distinct ~Q)",
        "(dedupe ~Q)",
        "(interleave ~Q ~Q)",
        "(interpose ~I ~Q)",
        "(range ~n)",
        "(range ~n ~p)",
        "(range 0 9 ~p)",
        "(range 5 0 -2)",
        "(mapcat (fn [x] [x x]) ~Q)",
        "(map-indexed + ~Q)",
        "(map-indexed (fn [i x] (* i x)) ~Q)",
        "(keep ~fII ~Q)",
        "(keep (fn [x] (when (odd? x) x)) ~Q)",
        "(keep-indexed (fn [i x] (when (odd? i) x)) ~Q)",
        "(flatten [(vec ~Q) [~I [~V]]])",
        "(map count (partition ~p ~Q))",
        "(apply concat (partition-all ~p ~Q))",
        "(apply concat (partition ~p ~p ~Q))",
        "(map first (partition-by odd? ~Q))",
        "(first (split-at ~n ~Q))",
        "(second (split-with ~fIB ~Q))",
        "(sort (vals ~M))",
        "(sort ~X)",
        "(map count ~W)",
        "(for [x ~Q] (inc x))",
        "(for [x ~Q :when (odd? x)] x)",
        "(for [x ~V y ~V :when (< x y)] (- y x))",
        "(for [x ~Q :let [y (* x x)] :while (< y 50)] y)",
        "(map second (sort (seq ~M)))",
        "(map (juxt inc dec) [])",
        "(flatten (map (juxt inc dec) ~Q))",
        "(sort (map val ~M))",
        "(map {1 2 3 4} [1 3])",
        "(take ~n (sort ~V))",
    ),
    "W": (
        "(mapv str ~V)",
        "(vec (map ~fSS ~W))",
        "(vec (sort ~W))",
        "(vec (sort-by count ~W))",
        '(clojure.string/split ~S #",")',
        '(clojure.string/split ~S #"[ab]")',
        '(clojure.string/split "a,b,c,d" #"," ~p)',
        "(vec (clojure.string/split-lines ~S))",
        "(vec (distinct ~W))",
        '(vec (re-seq #"[a-zA-Z]" ~S))',
        "(vec (map name (sort (keys ~M))))",
        "(conj ~W ~S)",
        "(vec (filter seq ~W))",
        "(vec (map str ~S))",
        '(or (re-matches #"(a)(b).*" ~S) [])',
    ),
    "M": (
        "(assoc ~M ~k ~I)",
        "(dissoc ~M ~k)",
        "(update ~M ~k (fnil inc 0))",
        "(merge ~M ~M)",
        "(merge-with + ~M ~M)",
        "(select-keys ~M [~k ~k])",
        "(zipmap [:a :b :c] ~Q)",
        "(into {} (map (fn [[k v]] [k (inc v)]) ~M))",
        "(into ~M [[~k ~I]])",
        "(reduce-kv (fn [m k v] (assoc m k (* 2 v))) {} ~M)",
        "(update-vals ~M inc)",
        "(reduce (fn [m x] (update m (if (odd? x) :a :b) (fnil + 0) x)) {} ~Q)",
        "(:a (assoc-in {} [:a ~k] ~I))",
        "(:b (update-in {:b ~M} [:b ~k] (fnil dec 1)))",
        "(into {} (filter (fn [[_ v]] (pos? v)) ~M))",
        "(conj ~M [~k ~I])",
        "(hash-map ~k ~I)",
    ),
    "X": (
        "(set ~Q)",
        "(conj ~X ~I)",
        "(disj ~X ~I)",
        "(clojure.set/union ~X ~X)",
        "(clojure.set/intersection ~X ~X)",
        "(clojure.set/difference ~X ~X)",
        "(into ~X ~Q)",
        "(set (map ~fII ~X))",
        "(into #{} (filter odd? ~Q))",
        "(set (vals ~M))",
    ),
}


def _if(draw: Draw, kind: str, depth: int, env: Env) -> str:
    return fill(draw, f"(if ~B ~{kind} ~{kind})", depth, env)


def _let(draw: Draw, kind: str, depth: int, env: Env) -> str:
    given, name = draw(st.sampled_from(KINDS)), fresh(env)
    value = make(draw, given, depth, env)
    return f"(let [{name} {value}] {make(draw, kind, depth, bind(env, given, name))})"


def _call(draw: Draw, kind: str, depth: int, env: Env) -> str:
    given, name = draw(st.sampled_from(KINDS)), fresh(env)
    body = make(draw, kind, depth, bind(env, given, name))
    return f"((fn [{name}] {body}) {make(draw, given, depth, env)})"


def _cond(draw: Draw, kind: str, depth: int, env: Env) -> str:
    return fill(draw, f"(cond ~B ~{kind} (nil? ~N) ~{kind} :else ~{kind})", depth, env)


def _do(draw: Draw, kind: str, depth: int, env: Env) -> str:
    return fill(draw, f"(do ~I ~{kind})", depth, env)


FORMS: tuple[Callable[[Draw, str, int, Env], str], ...] = (_if, _let, _call, _cond, _do)

# What shows whole structures, so that shapes are compared and not only what was taken from them.
SHAPES = (
    "(group-by odd? ~Q)",
    "(frequencies ~Q)",
    "(frequencies ~S)",
    "(partition ~p ~Q)",
    "(partition ~p ~p [0] ~Q)",
    "(partition-all ~p ~Q)",
    "(partition-by odd? ~Q)",
    "(split-at ~n ~Q)",
    "(split-with ~fIB ~Q)",
    "(map vector ~Q ~W)",
    "(map (fn [x] {:x x :s (str x)}) ~Q)",
    "(sort-by first (map (juxt ~fII identity) ~Q))",
    "(zipmap ~W ~Q)",
    "(sort (seq ~M))",
    "(seq ~Q)",
    "(seq ~S)",
    "(first ~S)",
    "(last ~W)",
    "(assoc-in {:a {:b 1}} [:a ~k] ~V)",
    "(update-in {:a ~M} [:a] dissoc ~k)",
    "(get-in {:a {:b ~V}} [:a :b 0])",
    "(let [{:keys [a] [x & r] :v} {:a ~I :v ~V}] [a x r])",
    '(let [{:strs [a]} {"a" ~I}] a)',
    "(let [[[a] b] [~V ~W]] {:a a :b b})",
    "(for [x ~V s ~W] [x s])",
    "(reduce (fn [m s] (assoc m s (count s))) {} ~W)",
    "((juxt first last count) ~Q)",
    "(clojure.walk/postwalk (fn [x] (if (number? x) (inc x) x)) {:a [~I {:b ~I}]})",
    "(clojure.walk/prewalk (fn [x] (if (string? x) (count x) x)) [~S [~S]])",
    "(tree-seq vector? seq [~I [~I]])",
    "(mapcat reverse [~V ~V])",
    "(into {} [[~S ~I] [~K ~V]])",
    "(empty ~M)",
    "(not-empty ~V)",
    "(keep identity [~N ~N])",
    "(remove nil? [~N ~N])",
    "(vec (interleave ~W ~Q))",
    "(max-key count ~W ~W)",
    "(apply hash-map [~k ~I])",
    '(if (seq ~W) (re-seq #"\\w+" "a bc d") ~V)',
    "(condp some ~Q #{1 2} :>> inc #{3} :three :none)",
    '(case ~S "a" 1 ("b" "ab") 2 :else)',
    "(case ~I 1 :one (2 3) :few :many)",
    "(cond->> ~Q ~B (map inc) ~B (filter odd?))",
    "(let [[x :as all] ~V] [x all])",
    "(let [[_ [y] & {:keys [a]}] [1 ~V :a ~I]] [y a])",
    "((fn [x & {:keys [a b] :or {b 2}}] [x a b]) ~I :a ~I)",
    "((fn f [n] (if (pos? n) (cons n (f (dec n))) [])) ~n)",
    "(loop [[x & more] ~V acc []] (if x (recur more (conj acc (inc x))) acc))",
    "(sort-by (juxt count identity) ~W)",
    "(sort-by ~fII > ~Q)",
    "(sort (vals (frequencies ~Q)))",
    "(merge-with into {:a ~V} {:a ~V :b ~V})",
    "(merge-with conj {:a ~V} {:a ~I})",
    "(update-keys ~M name)",
    "(apply map vector [~V ~V])",
    "(apply mapv + [~V ~V])",
    "(map + ~Q ~Q ~Q)",
    "(mapv (fn [[k v]] [v k]) {:a ~I})",
    '(re-seq #"(\\w)(\\d)?" ~S)',
    '(re-matches #"(?:a|b)+" ~S)',
    '(re-find #"(\\d+)-(\\d+)" "10-20 30-40")',
    "(parse-double ~S)",
    "(parse-boolean ~S)",
    '(map keyword ["a" "b-c"])',
    "(not-empty ~S)",
    "(reduce-kv (fn [m i v] (assoc m v i)) {} ~V)",
    "(reduce (fn [_ x] (if (odd? x) (reduced :odd) x)) nil ~Q)",
    "(partition ~p ~p [] ~Q)",
    "(partition-all ~p ~p ~Q)",
    "(interleave ~Q ~W ~Q)",
    "(take-while some? [~N ~N ~N])",
    "(map-indexed vector ~W)",
    "(max-key abs ~I ~I ~I)",
    "(min-key count ~W ~W ~W)",
    "(clojure.set/union ~X)",
    "(clojure.set/difference ~X ~X ~X)",
    "(select-keys ~M [:a :zz])",
    "(get-in ~M [:a] :none)",
    "(get-in [[~I ~I]] [0 1])",
    "(assoc-in [[~I]] [0 0] ~S)",
    "(update-in {:a [~I]} [:a 0] + ~I)",
    "(group-by count ~W)",
    "(group-by (juxt odd? pos?) ~Q)",
    "(vals (group-by identity [~I]))",
    "(some->> ~Q seq (map inc) (reduce +))",
    "(some-> {:a {:b ~N}} :a :b inc)",
    "(as-> ~V v (conj v 1) (map inc v) (vec v))",
    "(-> ~M (assoc :z 1) (dissoc :a) (update :z inc))",
    "(if-let [x (first ~Q)] [x] :none)",
    "(for [x ~V :when (odd? x) y [x (inc x)] :let [z (* x y)] :while (< z 40)] [x y z])",
    "(for [[k v] {:a ~I} i (range ~n)] [k v i])",
    "(bit-and-not ~n ~n)",
    "[(bit-test ~n ~n) (bit-set ~n ~n) (bit-flip ~n ~n) (bit-not ~n)]",
    '(clojure.string/split "a1b22c" #"\\d+")',
    '(clojure.string/join ", " (map str ~V))',
    '(clojure.string/replace ~S #"(a)(b)" "$2$1")',
    '[(name :a) (str :a) (pr-str "a\\"b") (pr-str [1 nil :k "s"])]',
    "(map (comp str inc) ~Q)",
    "((complement even?) ~I)",
    "(map (partial + ~I) ~Q)",
    "(filter (every-pred odd? pos?) ~Q)",
    "(keep #(when (odd? %) (* % %)) ~Q)",
    '(apply str (map #(str % "-" %2) ~W ~V))',
    "(nth ~V ~n :none)",
    "(vec (take ~n (drop ~n ~Q)))",
    "(= (set ~Q) (set (reverse ~Q)))",
    "(let [f (fn [x] (* 2 x)) g (comp f f)] (map g ~Q))",
    "(let [m ~M] (reduce (fn [t k] (+ t (get m k 0))) 0 [:a :b :c]))",
    "(boolean (when-let [x (seq ~X)] (pos? (count x))))",
    "(compare ~V ~V)",
    "(sort [~V ~V ~V])",
    "(sort-by :a [{:a ~I} {:a ~I}])",
    "(distinct [~V ~V ~W])",
    "(frequencies (map count ~W))",
    "(hash-map :a ~V)",
    "(zipmap [~K ~K] [~I ~I])",
    "(contains? {nil 1} nil)",
    "(get {nil ~I} nil)",
    "(get {[1 2] ~I} [1 2])",
    "(get {#{1} ~I} #{1})",
    "(conj #{} ~V ~V)",
    "(into {} [[:a ~I]] )",
    "(peek (conj ~V ~I))",
    "(reverse ~S)",
    "(rest ~S)",
    "(map identity ~S)",
    "(count (str ~V))",
    "(drop-last ~n ~W)",
    "(nthrest ~W ~n)",
    "(concat ~W ~V nil [nil])",
    "(flatten [[1 [2]] nil {:a [1]}])",
    "(interpose :x ~W)",
    "(dedupe [~N ~N ~N])",
    "(mod -7 ~p)",
    "[(quot -7 ~p) (rem -7 ~p) (mod 7 -3) (rem 7 -3)]",
    "[(max ~I ~F) (min ~F ~I)]",
    "(every? identity [])",
    "[(nil? ~N) (some? ~N) (true? ~B) (false? ~B)]",
    "[(pos-int? ~I) (neg-int? ~I) (nat-int? ~I)]",
    "[(fn? inc) (ifn? :a) (coll? ~Q) (associative? ~M) (map-entry? (first (seq {:a 1})))]",
    "(list ~I ~S)",
)
