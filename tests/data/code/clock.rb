# frozen_string_literal: true

module Clocks
  # 一个闹钟
  class Alarm
    attr_reader :at

    def initialize(at)
      @at = at
    end

    def ring?
      Time.now >= at
    end
  end
end

def noon
  Time.new(2026, 1, 1, 12)
end
