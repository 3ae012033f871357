import sqlite3, os
os.makedirs("db", exist_ok=True)
if os.path.exists("db/members.sqlite3"): os.remove("db/members.sqlite3")
c = sqlite3.connect("db/members.sqlite3")
c.executescript("""
create table club (id integer primary key autoincrement, name varchar(60) not null);
create table member (id integer primary key autoincrement, name varchar(80) not null, email varchar(120) not null, fee_cents integer not null, archived bool not null, club_id integer not null references club(id));
insert into club values (1,'Rowing'),(2,'Chess');
insert into member values
 (101,'Member 101','m101@example.org',4500,0,1),
 (102,'Member 102','m102@example.org',4500,0,1),
 (103,'Member 103','m103@example.org',2000,0,2),
 (107,'Member 107','m107@example.org',9900,1,2),
 (108,'Member 108','m108@example.org',2000,0,2),
 (112,'Member 112','m112@example.org',7700,1,1);
""")
c.commit()
