using System;

namespace Shop
{
    [Serializable]
    [Obsolete("use OrderBook")]
    public class Orders
    {
        [ThreadStatic]
        private static int count;

        public int Count { get; set; }

        public void Add(string name)
        {
            // 新订单
            count++;
        }
    }
}
