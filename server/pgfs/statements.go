package pgfs

// Each write is one statement, which is a transaction of its own. It begins with the row of the owner, locked, and does
// nothing without it: $1 is the user, $2 the fence, and $3 the number of asynchronous changes that were acknowledged. It
// returns the number of those changes now, and no row if the user was taken over or changes were lost.
//
// A take-over locks the row FOR UPDATE. So it waits for the writes that have the row, and those that come later see the
// new fence.
const (
	// synced waits until the transaction is on disk.
	synced = `WITH o AS MATERIALIZED
	(SELECT ops FROM owners WHERE user_id = $1 AND fence = $2 AND ops >= $3 FOR KEY SHARE)`

	// unsynced does not wait. PostgreSQL replays its log in the order of commits, so a crash that loses this transaction loses
	// all later ones, and a later one that is on disk has this one before it ("Asynchronous Commit" in its manual). The
	// setting that counts is the one at the commit; it ends with the transaction.
	unsynced = `WITH o AS (UPDATE owners SET ops = ops + 1 WHERE user_id = $1 AND fence = $2 AND ops >= $3
	AND set_config('synchronous_commit', 'off', true) = 'off' RETURNING ops)`

	result = ` SELECT ops FROM o`

	// $4 node, $5 n, $6 off, $7 size, $8 data, $9 object
	insertExtents = `, e AS (INSERT INTO extents (user_id, node, n, off, size, data, object) SELECT $1, $4::bigint, x.* FROM o,
	unnest($5::bigint[], $6::bigint[], $7::bigint[], $8::bytea[], $9::uuid[]) AS x)`
	// $10 size, $11 mtime, $12 n of dead extents
	updateNode = `, s AS (UPDATE nodes SET size = $10::bigint, mtime = $11::bigint FROM o WHERE user_id = $1 AND node = $4::bigint),
	d AS (DELETE FROM extents USING o WHERE user_id = $1 AND node = $4::bigint AND n = ANY($12::bigint[]))`

	// $4 node
	dropNode = `, dn AS (DELETE FROM nodes USING o WHERE user_id = $1 AND node = $4::bigint),
	dx AS (DELETE FROM extents USING o WHERE user_id = $1 AND node = $4::bigint)`
	keepNode   = `, k AS (INSERT INTO entries SELECT $1, 0, int8send($4::bigint), $4::bigint, false FROM o)`
	forgetNode = `, f AS (DELETE FROM entries USING o WHERE user_id = $1 AND parent = 0 AND name = int8send($4::bigint))`

	// $4 node, $5 parent, $6 name, $7 mtime, $8 whether it is a folder
	createEntry = unsynced + `,
	n AS (INSERT INTO nodes SELECT $1, $4::bigint, 0, $7::bigint FROM o),
	p AS (UPDATE nodes SET mtime = $7::bigint FROM o WHERE user_id = $1 AND node = $5::bigint),
	e AS (INSERT INTO entries SELECT $1, $5::bigint, $6::bytea, $4::bigint, $8::boolean FROM o)` + result

	// $4 node, $5 parent, $6 name, $7 mtime
	removeEntry = `, e AS (DELETE FROM entries USING o WHERE user_id = $1 AND parent = $5::bigint AND name = $6::bytea),
	p AS (UPDATE nodes SET mtime = $7::bigint FROM o WHERE user_id = $1 AND node = $5::bigint)` + result

	// $4 node, $5 parent, $6 name, $7 new parent, $8 new name, $9 mtime
	moveEntry = unsynced + `, m AS (UPDATE entries SET parent = $7::bigint, name = $8::bytea FROM o
	WHERE user_id = $1 AND parent = $5::bigint AND name = $6::bytea AND node = $4::bigint)` + touchParents
	// $10 the node that the entry leads to now; $4 is the one that it led to
	replaceEntry = `, r AS (UPDATE entries SET node = $10::bigint FROM o
	WHERE user_id = $1 AND parent = $7::bigint AND name = $8::bytea),
	e AS (DELETE FROM entries USING o WHERE user_id = $1 AND parent = $5::bigint AND name = $6::bytea)` + touchParents
	touchParents = `, p AS (UPDATE nodes SET mtime = $9::bigint FROM o WHERE user_id = $1 AND node IN ($5::bigint, $7::bigint))` + result

	barrier = `UPDATE owners SET ops = ops + 1 WHERE user_id = $1 AND fence = $2 AND ops >= $3 RETURNING ops`

	selectOwner = `SELECT fence, ops FROM owners WHERE user_id = $1`
	takeOver    = `WITH o AS MATERIALIZED (SELECT FROM owners WHERE user_id = $1 FOR UPDATE)
	UPDATE owners SET owner = $2, fence = fence + 1 FROM o WHERE user_id = $1 RETURNING fence, ops,
	(SELECT content FROM keys WHERE user_id = $1), (SELECT names FROM keys WHERE user_id = $1)`
	newUser = `WITH o AS (INSERT INTO owners VALUES ($1, $2, 0, 0) ON CONFLICT DO NOTHING RETURNING ops)
	INSERT INTO nodes SELECT $1, 1, 0, $3::bigint FROM o ON CONFLICT DO NOTHING`

	selectLast = `SELECT coalesce(max(node), 1), EXISTS (SELECT FROM entries WHERE user_id = $1 AND parent = 0),
	coalesce(max(mtime) FILTER (WHERE node = 1), 0) FROM nodes WHERE user_id = $1`
	selectKept   = `SELECT node FROM entries WHERE user_id = $1 AND parent = 0`
	selectFolder = `SELECT e.name, e.node, e.folder, n.size, n.mtime FROM entries e JOIN nodes n ON n.user_id = e.user_id AND n.node = e.node
	WHERE e.user_id = $1 AND e.parent = $2`
	selectExtents = `SELECT n, off, size, octet_length(data), CASE WHEN octet_length(data) <= $3 AND object IS NULL THEN data END, object
	FROM extents WHERE user_id = $1 AND node = $2 ORDER BY n`
	selectRun  = `SELECT n, data FROM extents WHERE user_id = $1 AND node = $2 AND n BETWEEN $3 AND $4`
	selectData = `SELECT n, data FROM extents WHERE user_id = $1 AND node = $2 AND n = ANY($3::bigint[])`
)
