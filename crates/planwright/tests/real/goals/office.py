"""Makes the workspace of the goals: an office with files, a repository, databases, a workbook and notes of a memory server.

    office.py ROOT
"""

import datetime
import json
import os
import shutil
import sqlite3
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
CUSTOMERS = [
    (1, "Ines", "ines@example.org", "north"),
    (2, "Jonas", "jonas@example.org", "south"),
    (3, "Karla", None, "west"),
]
ORDERS = [
    (1001, 1, 120.0, "2026-09-02", "paid"),
    (1002, 2, 80.5, "2026-09-10", "open"),
    (1003, 1, 60.0, "2026-10-01", "open"),
    (1004, 3, 300.0, "2026-10-08", "paid"),
    (1005, 2, 19.5, "2026-10-11", "open"),
]
PRODUCTS = [(1, "lamp", 3, 40.0), (2, "chair", 12, 60.0), (3, "desk", 0, 300.0)]


def database(path):
    rows = sqlite3.connect(path)
    rows.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, email TEXT, region TEXT)")
    rows.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER, total REAL, placed_on TEXT, status TEXT)")
    rows.execute("CREATE TABLE products (id INTEGER PRIMARY KEY, name TEXT, stock INTEGER, price REAL)")
    rows.executemany("INSERT INTO customers VALUES (?, ?, ?, ?)", CUSTOMERS)
    rows.executemany("INSERT INTO orders VALUES (?, ?, ?, ?, ?)", ORDERS)
    rows.executemany("INSERT INTO products VALUES (?, ?, ?, ?)", PRODUCTS)
    rows.commit()


def memory(path):
    lines = [
        {"type": "entity", "name": "Ines", "entityType": "customer", "observations": ["prefers mail"]},
        {"type": "entity", "name": "Shop", "entityType": "project", "observations": ["written in Python"]},
        {"type": "relation", "from": "Ines", "to": "Shop", "relationType": "uses"},
    ]
    with open(path, "w") as file:
        file.write("\n".join(json.dumps(line) for line in lines))


def repository(path):
    def git(*words):
        subprocess.run(["git", "-C", path, *words], check=True, stdout=subprocess.DEVNULL)

    git("init", "-q", "-b", "main")
    git("config", "user.name", "Ada")
    git("config", "user.email", "ada@example.org")
    git("add", "README.md", "src/report.py")
    git("commit", "-q", "-m", "Add the report")
    git("add", "CHANGELOG.md", "src/mail.py")
    git("commit", "-q", "-m", "Add mails")
    with open(os.path.join(path, "README.md"), "a") as file:
        file.write("\nMails are written by src/mail.py.\n")


def workbook(path):
    import openpyxl

    book = openpyxl.Workbook()
    sheet = book.active
    sheet.title = "Budget"
    for row in [("item", "planned", "spent"), ("rent", 1000, 1000), ("paper", 50, 62), ("power", 200, 240.5)]:
        sheet.append(row)
    book.save(path)


def warehouse(path):
    import duckdb

    duck = duckdb.connect(path)
    duck.execute("CREATE TABLE sales (region VARCHAR, month DATE, amount DECIMAL(10, 2))")
    for region, month, amount in [
        ("north", "2026-08-01", 900), ("north", "2026-09-01", 1100), ("south", "2026-08-01", 500),
        ("south", "2026-09-01", 450), ("west", "2026-08-01", 700), ("west", "2026-09-01", 1300),
    ]:
        duck.execute("INSERT INTO sales VALUES (?, ?, ?)", [region, datetime.date.fromisoformat(month), amount])
    duck.close()


def main(root):
    files = os.path.join(root, "files")
    shutil.copytree(os.path.join(HERE, "office"), files, dirs_exist_ok=True)
    shutil.copy(os.path.join(HERE, "office-AGENTS.md"), os.path.join(root, "AGENTS.md"))
    database(os.path.join(root, "rows.db"))
    memory(os.path.join(root, "memory.jsonl"))
    repository(os.path.join(files, "app"))
    for make, name in [(workbook, "files/budget.xlsx"), (warehouse, "sales.duckdb")]:
        try:
            make(os.path.join(root, name))
        except ModuleNotFoundError:
            pass  # the short form has no server for it


if __name__ == "__main__":
    main(sys.argv[1])
