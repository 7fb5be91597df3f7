-- 订单与客户
CREATE TABLE IF NOT EXISTS customers (
    id   INTEGER PRIMARY KEY,
    name TEXT NOT NULL
);

CREATE OR REPLACE FUNCTION orders_of(customer INTEGER)
RETURNS INTEGER AS $$
BEGIN
    RETURN (SELECT count(*) FROM orders WHERE customer_id = customer);
END;
$$ LANGUAGE plpgsql;

create index customers_name on customers (name);
