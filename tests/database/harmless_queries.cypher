RETURN range(1, 10) AS numbers

UNWIND range(1900, 2020, 10) AS decade MATCH (m:Movie) WHERE m.released >= decade AND m.released < decade + 10 RETURN decade, count(m)

MATCH p = (a:Person)-[:KNOWS*1..3]->(b) UNWIND range(0, length(p) - 1) AS i RETURN i, nodes(p)[i].name

MATCH (n:Person) WITH collect(n.name) AS names RETURN [i IN range(0, size(names) - 1) | names[i] + ' ' + toString(i)]

MATCH (n:Person) WITH collect(n) AS people, count(n) AS total UNWIND range(0, total - 1) AS i RETURN people[i].name

UNWIND range(date().year - 5, date().year) AS year OPTIONAL MATCH (m:Movie {released: year}) RETURN year, count(m)

RETURN [x IN range(1, 100) WHERE x % 7 = 0 | x * x] AS squares

RETURN range(10, -10, -5), range($from, $to)

RETURN 0o17 + 0x1F AS sum

MATCH (f:File) WHERE f.mode = 0o755 RETURN f.name

MATCH (c:City) WHERE c.population > 1_000_000 RETURN c.name

MATCH (c:City) WHERE c.area > 12_345.678_9 AND c.mask <> 0xFF_FF RETURN c.name LIMIT 1_000

MATCH (n:Person) USING INDEX n:Person(name) WHERE n.name = 'Ann' RETURN n

MATCH (n:Person)-[:KNOWS]->(m:Person) USING INDEX n:Person(name) USING INDEX m:Person(name, age) WHERE n.name = $a AND m.name = $b RETURN n, m

MATCH (n:Person) USING RANGE INDEX SEEK n:Person(name) WHERE n.name STARTS WITH 'A' RETURN n.name

MATCH (n:Person) USING TEXT INDEX n:Person(name) WHERE n.name CONTAINS 'nn' RETURN n.name

MATCH (n:Person) USING SCAN n:Person WHERE n.age > 30 RETURN n.name

MATCH (a:Person)-->(b)<--(c:Person) USING JOIN ON b WHERE a.name = 'Ann' RETURN c

MATCH (a)-[r:KNOWS]->(b) USING INDEX r:KNOWS(since) WHERE r.since > 2000 RETURN a.name, b.name

MATCH (n) /* all of n.* */ RETURN n.name

/** Who knows whom? **/ MATCH (a)-[:KNOWS]->(b) RETURN a.name, b.name

/* Finds
 * all people
 * by name
 */
MATCH (p:Person) RETURN p.name

MATCH (n) RETURN 2 /* times * */ * 3 AS six

/***** people *****/ MATCH (p:Person) RETURN p.name // * all *

MATCH (n) WHERE n.age IS :: INTEGER RETURN n

MATCH (n) WHERE n.age IS NOT :: STRING NOT NULL RETURN n.name

MATCH (n) WHERE n.age IS TYPED INTEGER | FLOAT RETURN n.name

MATCH (n) RETURN n.names IS :: LIST<STRING NOT NULL> AS are_texts

MATCH (n) WHERE n.at IS :: ZONED DATETIME OR n.at IS :: LOCAL DATETIME RETURN n

MATCH (n) WHERE n.x :: INTEGER RETURN [v IN n.values WHERE v IS :: STRING | toUpper(v)]

MATCH (n) WHERE n.at IS :: TIMESTAMP WITHOUT TIME ZONE RETURN n.at

MATCH (n:Person) RETURN n.name ORDER BY n.age DESC NULLS LAST

MATCH (n:Person) RETURN n.name AS name, n.age AS age ORDER BY age NULLS FIRST, name ASC NULLS LAST LIMIT 10

MATCH (n:Person) RETURN n.name ORDER BY rand() LIMIT 5

MATCH (n:Person) WITH n, rand() AS r ORDER BY r LIMIT 3 RETURN n.name

RETURN randomUUID() AS id, current_date() AS today

MATCH (n) WHERE n.name IS NORMALIZED AND n.title IS NOT NFC NORMALIZED RETURN n.name

MATCH (n) RETURN CASE n.age WHEN < 18 THEN 'young' WHEN >= 65 THEN 'old' WHEN IS NULL THEN 'unknown' ELSE 'adult' END AS kind

MATCH (n) RETURN CASE n.x WHEN IS :: STRING THEN 's' WHEN IN [1, 2] THEN 'few' END

RETURN trim(BOTH 'x' FROM 'xxhixx'), trim(LEADING FROM '  a'), trim('-' FROM '-a-')

MATCH REPEATABLE ELEMENTS (a:Person)-[:KNOWS]->(b)-[:KNOWS]->(c) RETURN a.name, c.name

MATCH DIFFERENT RELATIONSHIPS (a)-[:KNOWS]->(b)-[:KNOWS]->(c) RETURN count(*)

MATCH (n) RETURN replace(replace(replace(n.name, 'ä', 'ae'), 'ö', 'oe'), 'ü', 'ue') AS plain

MATCH (n) WITH replace(n.name, ' ', '_') AS name, n WHERE toLower(name) = toLower($name) RETURN n

MATCH (n) RETURN replace(n.template, '{name}', n.name) AS text

MATCH (p:Person) RETURN p.first + ' ' + p.middle + ' ' + p.last + ' (' + toString(p.born) + '-' + toString(p.died) + ')' AS name

RETURN [1, 2, 3, 4][2:3] AS middle, [1, 2, 3][1..]

RETURN CAST('[1, 2]' AS INT64[]) AS list, CAST('1.25' AS DECIMAL(5, 2)) AS price, CAST(3 AS STRING)

MATCH (a:Person)-[e:KNOWS* WSHORTEST(weight) 1..10]->(b) RETURN cost(e), b.name

MATCH (a:User)-[e:Follows*1..2 (r, n | WHERE r.since > 2020 | {r.since}, {n.name})]->(b:User) RETURN a.name, b.name

RETURN 1 << 3 AS eight, 256 >> 2 AS more, bitwise_and(7, 3)

RETURN list_sort(list_distinct(list_concat([1, 2], [2, 3]))) AS merged

MATCH (a:Person) RETURN a.* ORDER BY a.name SKIP 20 LIMIT 10

MATCH (a:Person)-[:ACTED_IN]->(m:Movie)<-[:DIRECTED]-(d:Person) WHERE a <> d RETURN a.name, d.name, count(DISTINCT m) AS films ORDER BY films DESC LIMIT 10

MATCH (a:Person {name: $name})-[:ACTED_IN]->(:Movie)<-[:ACTED_IN]-(b:Person)-[:ACTED_IN]->(:Movie)<-[:ACTED_IN]-(c:Person) WHERE NOT (a)-[:ACTED_IN]->()<-[:ACTED_IN]-(c) AND a <> c RETURN DISTINCT c.name

MATCH (m:Movie) OPTIONAL MATCH (m)<-[:ACTED_IN]-(a) OPTIONAL MATCH (m)<-[:DIRECTED]-(d) OPTIONAL MATCH (m)<-[:WROTE]-(w) RETURN m.title, collect(DISTINCT a.name), collect(DISTINCT d.name), collect(DISTINCT w.name)

MATCH (m:Movie)-[:HAS_GENRE]->(g:Genre) WITH g, count(m) AS n, avg(m.rating) AS rating WHERE n >= 10 WITH g, n, rating ORDER BY rating DESC LIMIT 5 MATCH (g)<-[:HAS_GENRE]-(best:Movie) WHERE best.rating >= rating RETURN g.name, n, round(rating, 2) AS mean, collect(best.title)[..3] AS examples

MATCH (p:Person) WHERE COUNT { (p)-[:ACTED_IN]->() } > 5 AND NOT EXISTS { (p)-[:DIRECTED]->() } RETURN p.name

MATCH (p:Person) WHERE EXISTS { MATCH (p)-[:ACTED_IN]->(m:Movie)<-[:DIRECTED]-(d) WHERE d.born < 1950 AND m.released > 2000 } RETURN p.name

MATCH (p:Person) RETURN p.name, COLLECT { MATCH (p)-[:ACTED_IN]->(m) WHERE m.released > 2000 RETURN m.title ORDER BY m.title LIMIT 3 } AS films

MATCH (c:Company)<-[:WORKS_FOR]-(e:Employee) WITH c, avg(e.salary) AS mean, percentileCont(e.salary, 0.5) AS median, stDev(e.salary) AS spread RETURN c.name, mean, median, spread ORDER BY mean DESC

MATCH p = shortestPath((a:Person {name: $a})-[:KNOWS|WORKS_WITH*..6]-(b:Person {name: $b})) RETURN [n IN nodes(p) | n.name] AS names, length(p) AS hops

MATCH p = allShortestPaths((a:City {name: 'Rome'})-[:ROAD*]-(b:City {name: 'Oslo'})) WHERE all(r IN relationships(p) WHERE r.open) RETURN p LIMIT 3

MATCH p = ANY SHORTEST (a:City {name: $a})-[:ROAD]-+(b:City {name: $b}) RETURN length(p)

MATCH p = SHORTEST 3 (a:City)-[:ROAD]-+(b:City) WHERE a.name = $a AND b.name = $b RETURN p

MATCH (a:Station) ((x)-[:NEXT]->(y) WHERE x.zone = y.zone){1,5} (b:Station) RETURN a.name, b.name, size(x) AS stops

MATCH ACYCLIC (a:Person)-[:KNOWS]->{1,4}(b:Person) RETURN DISTINCT b.name

MATCH (a:Person)-[:PARENT_OF]->(b)-[:PARENT_OF]->(c)-[:PARENT_OF]->(d)-[:PARENT_OF]->(e) RETURN a.name, e.name

MATCH (a)-[:KNOWS]->(b)-[:KNOWS]->(c)-[:KNOWS]->(a) WHERE a.name < b.name AND b.name < c.name RETURN a.name, b.name, c.name

MATCH (a)-[:KNOWS]-(b), (b)-[:KNOWS]-(c), (c)-[:KNOWS]-(d), (a)-[:KNOWS]-(c), (a)-[:KNOWS]-(d), (b)-[:KNOWS]-(d) RETURN count(*) AS cliques

MATCH (m:Movie)<-[:DIRECTED]-(d), (m)<-[:WROTE]-(w), (m)<-[:PRODUCED]-(p), (m)-[:HAS_GENRE]->(g), (m)-[:IN_LANGUAGE]->(l), (m)-[:WON]->(a) RETURN m.title, d.name, w.name, p.name, g.name, l.name, a.name

MATCH (m:Movie)<-[r:RATED]-(u:User) WITH m, avg(r.stars) AS mean, count(r) AS votes RETURN m.title, (votes * mean + 10 * 3.0) / (votes + 10) AS weighted ORDER BY weighted DESC LIMIT 20

MATCH (p:Product)<-[o:ORDERS]-(:Order)<-[:PURCHASED]-(c:Customer) RETURN c.companyName, p.productName, sum(o.quantity * toFloat(o.unitPrice) * (1 - toFloat(o.discount))) AS volume ORDER BY volume DESC LIMIT 10

MATCH (c:Customer)-[:PURCHASED]->(o:Order)-[:ORDERS]->(p:Product)-[:PART_OF]->(k:Category) WITH k.categoryName AS category, c.country AS country, count(DISTINCT o) AS orders ORDER BY category, orders DESC WITH category, collect({country: country, orders: orders}) AS countries RETURN category, countries[0].country AS first, countries[0].orders AS number

MATCH (u:User)-[:POSTED]->(t:Tweet)-[:TAGS]->(h:Hashtag) WHERE datetime(t.createdAt) > datetime('2020-01-01T00:00:00Z') - duration('P30D') WITH h, count(t) AS uses RETURN h.name, uses ORDER BY uses DESC LIMIT 10

MATCH (e:Event) WHERE date(e.date) >= date('2020-01-01') AND date(e.date) < date('2020-02-01') RETURN e.name, e.date.month AS month, duration.between(date(e.date), date()).days AS ago

MATCH (a:Place), (b:Place) WHERE a.name = $a AND b.name <> a.name RETURN b.name, point.distance(a.location, b.location) / 1000 AS km ORDER BY km LIMIT 5

MATCH (n) WHERE any(label IN labels(n) WHERE label IN ['Person', 'Company']) AND size(keys(n)) > 2 RETURN labels(n), count(*)

MATCH (n)-[r]->(m) RETURN labels(n) AS from, type(r) AS relation, labels(m) AS to, count(*) AS number ORDER BY number DESC

MATCH (n) WHERE n.name =~ '(?i).*smith.*' OR n.name CONTAINS 'O\'Neil' RETURN n.name

MATCH (n) WHERE n.name STARTS WITH 'A' AND n.name ENDS WITH 'z' XOR n.alias IS NOT NULL RETURN n.name, coalesce(n.alias, 'none') AS alias

MATCH (n:Person&!Actor)-[r:!KNOWS]->(m:Movie|Series) RETURN n.name, type(r), m.title

MATCH (n:Person WHERE n.born > 1970)-[r:ACTED_IN WHERE r.roles IS NOT NULL]->(m WHERE m.released = 2000) RETURN n.name, r.roles, m.title

MATCH (n IS Person)-[IS KNOWS]->(m IS Person) RETURN n.name, m.name

MATCH (n) RETURN n {.name, .born, films: [(n)-[:ACTED_IN]->(m) | m {.title, .released}]} AS person

MATCH (n {name: $name}) RETURN properties(n) AS data, n[$key] AS one, [k IN keys(n) WHERE k <> 'name' | {key: k, value: n[k]}] AS all

UNWIND $rows AS row MATCH (p:Person {id: row.id}) RETURN p.name, row.note, row['at'] AS at

WITH $vector AS v MATCH (d:Document) WITH d, vector.similarity.cosine(d.embedding, v) AS score WHERE score > 0.8 RETURN d.title, score ORDER BY score DESC LIMIT 5

MATCH (d:Document) RETURN d.title, array_cosine_similarity(d.embedding, $vector) AS score ORDER BY score DESC LIMIT 5

MATCH (a:Account)-[t:SENT*2..4]->(a) WHERE all(x IN t WHERE x.amount > 1000) RETURN a.number, [x IN t | x.amount] AS amounts

MATCH (a:Account)-[t1:SENT]->(b)-[t2:SENT]->(c) WHERE t2.at > t1.at AND t2.at < t1.at + duration({days: 1}) AND abs(t1.amount - t2.amount) < 0.05 * t1.amount RETURN a.number, b.number, c.number

MATCH (g:Gene)-[:ASSOCIATED_WITH]->(d:Disease)<-[:TREATS]-(c:Compound) WHERE d.name IN $diseases WITH g, collect(DISTINCT d.name) AS diseases, collect(DISTINCT c.name) AS drugs WHERE size(diseases) > 1 RETURN g.symbol, diseases, drugs

MATCH (s:Student)-[t:TOOK]->(c:Course) WITH s, avg(CASE t.grade WHEN 'A' THEN 4.0 WHEN 'B' THEN 3.0 WHEN 'C' THEN 2.0 ELSE 0.0 END) AS gpa RETURN s.name, round(gpa, 2) AS gpa ORDER BY gpa DESC, s.name

MATCH (t:Team)<-[:PLAYED]-(m) WITH t, count(m) AS played, sum(CASE WHEN m.winner = t.name THEN 3 WHEN m.winner IS NULL THEN 1 ELSE 0 END) AS points RETURN t.name, played, points ORDER BY points DESC, played

MATCH (p:Person)-[:LIVES_IN]->(c:City)-[:IN]->(k:Country {name: 'France'}) WITH c, count(p) AS people ORDER BY people DESC SKIP 1 LIMIT 1 RETURN c.name AS second, people

MATCH (n:Person) WITH max(n.age) AS oldest MATCH (n:Person {age: oldest}) RETURN n.name, oldest

MATCH (n:Person) WITH percentileDisc(n.age, 0.9) AS bound MATCH (m:Person) WHERE m.age >= bound RETURN m.name, m.age

MATCH (a:Person), (b:Person) WHERE a.born = b.born AND id(a) < id(b) RETURN a.name, b.name, a.born

MATCH (a:Person) WITH a.born / 10 * 10 AS decade, count(*) AS n RETURN toString(decade) + 's' AS decade, n ORDER BY decade

MATCH (n) WITH n, size([(n)--() | 1]) AS degree ORDER BY degree DESC LIMIT 10 RETURN n.name, degree

MATCH (a:Author)-[:WROTE]->(p:Paper)-[:CITES]->(q:Paper)<-[:WROTE]-(a) RETURN a.name, count(*) AS own ORDER BY own DESC

MATCH (p:Paper)-[:CITES]->(q:Paper) WITH q, count(p) AS cited WITH collect(cited) AS counts RETURN size([i IN range(0, size(counts) - 1) WHERE counts[i] > i]) AS h

MATCH (n:Package)-[:DEPENDS_ON*1..5]->(m:Package {name: 'left-pad'}) RETURN DISTINCT n.name ORDER BY n.name

MATCH (f:File)<-[:CONTAINS*]-(d:Directory) WHERE f.size > 10 * 1024 * 1024 RETURN d.path, sum(f.size) / 1024.0 AS kilobytes

MATCH (n:Word) WHERE n.text IN ['create', 'delete', 'set', 'merge; DROP', "it's", "/* no comment */"] RETURN n.text, n.`part of speech`

MATCH (`the person`:`A Person`)-[:`is friend of`]->(x) RETURN `the person`.`full name` AS `full name`, x.name

MATCH (n) WHERE n.set = 1 AND n.create IS NULL AND n.delete <> n.call RETURN {set: n.set, delete: n.delete, load: 1} AS merge

MATCH (n:CREATE)-[:SET]->(m) RETURN n.name AS match, m.name AS return

MATCH (start)-[:NEXT*0..]->(end) WHERE NOT ()-[:NEXT]->(start) AND NOT (end)-[:NEXT]->() RETURN start.name, end.name

MATCH (n) WHERE (n:Person OR n:Company) AND NOT n:Deleted AND (n)--(:Country {code: 'FR'}) RETURN n.name

MATCH (n:Person) WHERE none(x IN n.tags WHERE x IN $banned) AND single(x IN n.tags WHERE x = 'vip') RETURN n.name

MATCH (n:Person) RETURN toUpper(left(n.name, 1)) + toLower(substring(n.name, 1)) AS name, split(n.mail, '@')[1] AS host, reverse(n.name), size(n.name)

MATCH (n:Sensor)-[:READ]->(v) WITH n, v ORDER BY v.at WITH n, collect(v.value) AS xs RETURN n.id, [i IN range(1, size(xs) - 1) | xs[i] - xs[i - 1]] AS steps

MATCH (n:Person) RETURN n.name, exp(n.x) / (1 + exp(n.x)) AS p, sqrt(n.x ^ 2 + n.y ^ 2) AS r, -n.x % 3, 1.5e-3, .5

MATCH (a:Person)-[:KNOWS]->(b) RETURN a.name AS x, b.name AS y UNION ALL MATCH (a:Person)<-[:KNOWS]-(b) RETURN a.name AS x, b.name AS y UNION MATCH (a:Ghost) RETURN a.name AS x, null AS y

MATCH (n) WHERE n.a = 1 OR n.a = 2 OR n.a = 3 OR n.a = 4 OR n.a = 5 OR n.a = 6 OR n.a = 7 OR n.a = 8 OR n.a = 9 OR n.a = 10 OR n.a = 11 OR n.a = 12 OR n.a = 13 OR n.a = 14 OR n.a = 15 RETURN n

OPTIONAL MATCH (n:Person {name: $name}) WITH n LIMIT 1 WHERE n IS NOT NULL MATCH (n)-[r]->(m) RETURN type(r) AS relation, collect(m.name) AS names ORDER BY relation;

MATCH (n:Person) WITH n ORDER BY n.age DESC WITH collect(n) AS all, count(*) AS total UNWIND all[0..total / 10] AS top RETURN top.name, total

MATCH (n) WHERE isNaN(n.x) OR isEmpty(n.tags) OR valueType(n.y) STARTS WITH 'LIST' RETURN elementId(n)

MATCH (n) RETURN date.truncate('month', n.at) AS month, count(*) ORDER BY month

MATCH (n:Article) WHERE n.text CONTAINS $phrase RETURN n.title, substring(n.text, 0, 200) + '...' AS beginning ORDER BY size(n.text) DESC LIMIT $limit

MATCH (c:Class)-[:SUBCLASS_OF*0..10]->(top:Class {name: 'Animal'}) WITH DISTINCT c MATCH (i)-[:INSTANCE_OF]->(c) RETURN c.name, count(i) AS instances

MATCH (a:Airport {code: $from})-[f:FLIGHT]->(via)-[g:FLIGHT]->(b:Airport {code: $to}) WHERE f.arrives + 3600 <= g.leaves WITH via, f, g, g.arrives - f.leaves AS takes ORDER BY takes LIMIT 3 RETURN via.code, f.number, g.number, takes / 3600 AS hours
