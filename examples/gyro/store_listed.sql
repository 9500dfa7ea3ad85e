-- The online store of store.py as a list of transactions.
CREATE TABLE carts (id INTEGER PRIMARY KEY, opened TEXT);
CREATE TABLE lines (cart INTEGER NOT NULL, item INTEGER NOT NULL, amount INTEGER NOT NULL, PRIMARY KEY (cart, item));
CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT, stock INTEGER NOT NULL);

-- transaction: create(cart)
INSERT INTO carts (id, opened) VALUES (:cart, CURRENT_TIMESTAMP);

-- transaction: add(cart, item, amount)
SELECT stock FROM items WHERE id = :item;
DELETE FROM lines WHERE cart = :cart AND item = :item;
INSERT INTO lines (cart, item, amount) VALUES (:cart, :item, :amount);

-- transaction: order(cart)
SELECT item, amount FROM lines WHERE cart = :cart;
UPDATE items SET stock = stock - :amount WHERE id = :item;
DELETE FROM lines WHERE cart = :cart;
