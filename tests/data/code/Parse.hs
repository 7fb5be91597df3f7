module Parse where

import Data.Char (isDigit)

-- | 读一个数字
number :: String -> Maybe (Int, String)
number text =
  case span isDigit text of
    ("", _) -> Nothing
    (digits, rest) -> Just (read digits, rest)

data Token
  = Number Int
  | Symbol Char
  deriving (Show)
