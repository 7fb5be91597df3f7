(ns demo.core
  (:require [clojure.string :as str]))

;; 问候
(defn greet
  [name]
  (str "Hello, " (str/trim name)))

(defrecord Point [x y])
