'use strict';

const TAX = 0.19;

/**
 * Adds up what is in the cart.
 * 计算购物车的总价。
 */
export function total(items) {
  let sum = 0;
  for (const item of items) {
    sum += item.price * item.count;
  }

  return sum * (1 + TAX);
}

export default class Cart {
  constructor() {
    this.items = [];
  }

  add(item) {
    this.items.push(item);
    return this;
  }
}

const empty = () => {
  return new Cart();
};

module.exports.empty = empty;
