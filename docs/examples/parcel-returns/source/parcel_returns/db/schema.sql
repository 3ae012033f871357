CREATE TABLE products (
    product_id INTEGER PRIMARY KEY,
    sku TEXT NOT NULL UNIQUE,
    title TEXT NOT NULL,
    category TEXT NOT NULL,
    price_cents INTEGER NOT NULL
);

CREATE TABLE collection_points (
    point_code TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    postcode TEXT NOT NULL,
    opened_on TEXT NOT NULL,
    closed_on TEXT
);

CREATE TABLE orders (
    order_id INTEGER PRIMARY KEY,
    order_no TEXT NOT NULL UNIQUE,
    channel TEXT NOT NULL,
    placed_at TEXT NOT NULL,
    delivered_at TEXT NOT NULL
);

CREATE TABLE order_lines (
    order_line_id INTEGER PRIMARY KEY,
    order_id INTEGER NOT NULL REFERENCES orders (order_id),
    product_id INTEGER NOT NULL REFERENCES products (product_id),
    quantity INTEGER NOT NULL,
    unit_price_cents INTEGER NOT NULL
);

CREATE TABLE returns (
    return_id INTEGER PRIMARY KEY,
    return_no TEXT NOT NULL UNIQUE,
    order_id INTEGER NOT NULL REFERENCES orders (order_id),
    registered_at TEXT NOT NULL,
    received_on TEXT
);

CREATE TABLE return_lines (
    return_line_id INTEGER PRIMARY KEY,
    return_id INTEGER NOT NULL REFERENCES returns (return_id),
    order_line_id INTEGER NOT NULL REFERENCES order_lines (order_line_id),
    quantity INTEGER NOT NULL,
    reason TEXT NOT NULL
);

CREATE TABLE scan_events (
    scan_id INTEGER PRIMARY KEY,
    return_id INTEGER NOT NULL REFERENCES returns (return_id),
    event_code TEXT NOT NULL,
    point_code TEXT REFERENCES collection_points (point_code),
    terminal TEXT,
    scanned_at TEXT NOT NULL
);

CREATE TABLE settlements (
    settlement_id INTEGER PRIMARY KEY,
    return_id INTEGER NOT NULL UNIQUE REFERENCES returns (return_id),
    run_date TEXT NOT NULL,
    outcome TEXT NOT NULL,
    basis TEXT NOT NULL,
    goods_cents INTEGER NOT NULL,
    deduction_cents INTEGER NOT NULL,
    refund_cents INTEGER NOT NULL,
    settled_at TEXT NOT NULL
);

CREATE INDEX scan_events_by_return ON scan_events (return_id, event_code);
CREATE INDEX return_lines_by_return ON return_lines (return_id);
CREATE INDEX order_lines_by_order ON order_lines (order_id);
CREATE INDEX settlements_by_run ON settlements (run_date);
