const std = @import("std");

/// 栈
pub const Stack = struct {
    items: []u8,

    pub fn top(self: Stack) u8 {
        return self.items[self.items.len - 1];
    }
};

pub fn main() !void {
    std.debug.print("ok\n", .{});
}

test "nothing" {
    try std.testing.expect(true);
}
