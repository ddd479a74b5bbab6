/**
 * The contract of every bucket behind `env.STORAGE`, as cases that run inside a Worker. They run on the runtime's simulation of R2
 * (`test/storage/bucket.test.ts`) and on the embedded one (`embedded/r2.workerd.test.ts`). Keys live under the case's own prefix.
 */

export interface BucketCase {
  readonly name: string;
  readonly run: (bucket: R2Bucket, prefix: string) => Promise<void>;
}
export const bucketCases: BucketCase[] = [];
const bucketCase = (name: string, run: BucketCase["run"]): void => {
  bucketCases.push({ name, run });
};

function check(condition: boolean, what: string): asserts condition {
  if (!condition) throw new Error(what);
}
function same(actual: unknown, expected: unknown, what: string): void {
  const [a, e] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (a !== e) throw new Error(`${what}: expected ${e}, got ${a}`);
}
async function rejects(work: Promise<unknown>, pattern: RegExp, what: string): Promise<void> {
  const error = await work.then(
    () => null,
    (reason: unknown) => String(reason),
  );
  check(error !== null && pattern.test(error), `${what}: expected a rejection like ${pattern}, got ${error ?? "none"}`);
}
async function found<T>(value: Promise<T | null>): Promise<T> {
  const object = await value;
  check(object !== null, "the object should exist");
  return object;
}
const withBody = async (bucket: R2Bucket, key: string, options?: R2GetOptions): Promise<R2ObjectBody> => {
  const object = await found(bucket.get(key, options));
  check("body" in object, "the object should come with its body");
  return object as R2ObjectBody;
};
const hex = (buffer: ArrayBuffer | undefined): string =>
  buffer === undefined ? "none" : [...new Uint8Array(buffer)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const bytesOf = (size: number): Uint8Array => Uint8Array.from({ length: size }, (_, i) => (i * 31 + (i >> 8)) & 0xff);
const digest = async (algorithm: string, data: Uint8Array): Promise<string> => hex(await crypto.subtle.digest(algorithm, data));

bucketCase("what is put is got back, with its size, etag, md5 and metadata", async (bucket, p) => {
  const put = await found(
    bucket.put(`${p}a/b.txt`, "hello", {
      httpMetadata: { contentType: "text/plain", cacheControl: "no-store" },
      customMetadata: { one: "1", "zwei ✓": "zwölf" },
    }),
  );
  const md5 = await digest("MD5", new TextEncoder().encode("hello"));
  same([put.key, put.size, put.etag, put.httpEtag], [`${p}a/b.txt`, 5, md5, `"${md5}"`], "put");
  const got = await withBody(bucket, `${p}a/b.txt`);
  same(await got.text(), "hello", "body");
  same([got.key, got.size, got.etag, got.version, hex(got.checksums.md5)], [put.key, 5, md5, put.version, md5], "get");
  same(got.httpMetadata?.contentType, "text/plain", "content type");
  same(got.httpMetadata?.cacheControl, "no-store", "cache control");
  same(got.customMetadata, { one: "1", "zwei ✓": "zwölf" }, "custom metadata");
  check(Math.abs(got.uploaded.getTime() - Date.now()) < 60_000, "uploaded is now");
  const head = await found(bucket.head(`${p}a/b.txt`));
  same([head.size, head.etag, head.customMetadata], [5, md5, { one: "1", "zwei ✓": "zwölf" }], "head");
});

bucketCase("a missing object is null for get and head", async (bucket, p) => {
  same(await bucket.get(`${p}none`), null, "get");
  same(await bucket.head(`${p}none/deep`), null, "head");
});

bucketCase("a put replaces content and metadata", async (bucket, p) => {
  const first = await found(bucket.put(`${p}x`, "one", { customMetadata: { a: "1" } }));
  const second = await found(bucket.put(`${p}x`, "two!"));
  check(first.etag !== second.etag && first.version !== second.version, "etag and version change");
  const got = await withBody(bucket, `${p}x`);
  same([await got.text(), got.size, got.customMetadata], ["two!", 4, {}], "replaced");
});

bucketCase("the same length in the same moment is still another etag", async (bucket, p) => {
  for (const text of ["aaaa", "bbbb", "cccc"]) {
    const put = await found(bucket.put(`${p}x`, text));
    const got = await withBody(bucket, `${p}x`);
    same([await got.text(), got.etag], [text, put.etag], "content and etag");
  }
});

bucketCase("an empty object is an object", async (bucket, p) => {
  await bucket.put(`${p}empty`, "");
  const got = await withBody(bucket, `${p}empty`);
  same([got.size, await got.text(), got.etag], [0, "", "d41d8cd98f00b204e9800998ecf8427e"], "empty");
});

bucketCase("every kind of value can be put", async (bucket, p) => {
  const data = bytesOf(1000);
  const fixed = new FixedLengthStream(1000);
  const writing = (async () => {
    const writer = fixed.writable.getWriter();
    await writer.write(data);
    await writer.close();
  })();
  for (const value of [data, data.buffer as ArrayBuffer, new Blob([data]), fixed.readable]) {
    const put = await found(bucket.put(`${p}v`, value));
    same(put.size, 1000, "size");
    same(hex(await (await withBody(bucket, `${p}v`)).arrayBuffer()), hex(data.buffer as ArrayBuffer), "bytes");
  }
  await writing;
});

bucketCase("a large object is streamed both ways", async (bucket, p) => {
  const chunk = bytesOf(64 * 1024);
  const chunks = 100;
  const fixed = new FixedLengthStream(chunk.length * chunks);
  const writing = (async () => {
    const writer = fixed.writable.getWriter();
    for (let i = 0; i < chunks; i++) await writer.write(chunk);
    await writer.close();
  })();
  const put = await found(bucket.put(`${p}big.bin`, fixed.readable));
  await writing;
  const digesting = new crypto.DigestStream("MD5");
  await (await withBody(bucket, `${p}big.bin`)).body.pipeTo(digesting);
  same([put.size, put.etag], [chunk.length * chunks, hex(await digesting.digest)], "size and etag");
  const part = await withBody(bucket, `${p}big.bin`, { range: { offset: chunk.length * 50 - 2, length: 4 } });
  same(hex(await part.arrayBuffer()), hex(new Uint8Array([...chunk.subarray(-2), ...chunk.subarray(0, 2)]).buffer), "a part in the middle");
});

bucketCase("a writer that gives up in the middle leaves what was there", async (bucket, p) => {
  for (const [key, before] of [
    [`${p}old`, "old"],
    [`${p}new`, undefined],
  ] as const) {
    if (before !== undefined) await bucket.put(key, before);
    const { readable, writable } = new FixedLengthStream(8 * 1024 * 1024);
    const writer = writable.getWriter();
    const refused = bucket.put(key, readable).then(
      () => "stored",
      () => "refused",
    );
    for (let written = 0; written < 3; written++) await writer.write(new Uint8Array(1024 * 1024));
    await writer.abort(new Error("given up"));
    same(await refused, "refused", "the write");
    same((await bucket.get(key).then((object) => object?.text())) ?? undefined, before, "what is there");
  }
});

bucketCase("a part of a copy is the object that it is, and has another etag after each write", async (bucket, p) => {
  const key = `transfers/${p}0`;
  const bytes = new Uint8Array(2 * 1024 * 1024).fill(7);
  const [first, second] = [await found(bucket.put(key, bytes)), await found(bucket.put(key, bytes.fill(8)))];
  same(first.etag !== second.etag, true, "the etags differ");
  const read = await withBody(bucket, key);
  same([read.etag, read.size], [second.etag, bytes.length], "what is told");
  same(hex(await read.arrayBuffer()), hex(bytes.buffer), "bytes");
});

bucketCase("parts of an object can be got", async (bucket, p) => {
  await bucket.put(`${p}r`, "0123456789");
  const part = async (range: R2Range | Headers): Promise<unknown> => {
    const got = await withBody(bucket, `${p}r`, { range });
    return [await got.text(), got.size];
  };
  same(await part({ offset: 2, length: 3 }), ["234", 10], "offset and length");
  same(await part({ offset: 7 }), ["789", 10], "offset");
  same(await part({ length: 2 }), ["01", 10], "length");
  same(await part({ suffix: 4 }), ["6789", 10], "suffix");
  same(await part({ suffix: 40 }), ["0123456789", 10], "long suffix");
  same(await part({ offset: 8, length: 100 }), ["89", 10], "over the end");
  same(await part(new Headers({ range: "bytes=1-3" })), ["123", 10], "header");
  same(await part(new Headers({ range: "bytes=-2" })), ["89", 10], "suffix header");
  same(await part(new Headers({ range: "bytes=8-99" })), ["89", 10], "header over the end");
  const got = await withBody(bucket, `${p}r`, { range: { offset: 2, length: 3 } });
  same(got.range, { offset: 2, length: 3 }, "the range is told");
  await got.text();
  await rejects(bucket.get(`${p}r`, { range: { offset: 11 } }), /10039/, "beyond the end");
});

bucketCase("[P8] onlyIf etagMatches: a put is done only over the version that was read", async (bucket, p) => {
  same(await bucket.put(`${p}c`, "x", { onlyIf: { etagMatches: "00000000000000000000000000000000" } }), null, "absent");
  same(await bucket.head(`${p}c`), null, "nothing was made");
  const first = await found(bucket.put(`${p}c`, "one"));
  check((await bucket.put(`${p}c`, "two", { onlyIf: { etagMatches: first.etag } })) !== null, "the right etag");
  same(await bucket.put(`${p}c`, "three", { onlyIf: { etagMatches: first.etag } }), null, "an old etag");
  same(await (await withBody(bucket, `${p}c`)).text(), "two", "unchanged");
});

bucketCase("[P8] of puts at the same time over one etag exactly one is done", async (bucket, p) => {
  const first = await found(bucket.put(`${p}race`, "start"));
  const results = await Promise.all(
    Array.from({ length: 8 }, (_, i) => bucket.put(`${p}race`, `writer ${i}`, { onlyIf: { etagMatches: first.etag } })),
  );
  same(results.filter((result) => result !== null).length, 1, "winners");
});

bucketCase("onlyIf etagDoesNotMatch * makes only what is not there", async (bucket, p) => {
  const onlyIf = { etagDoesNotMatch: "*" };
  check((await bucket.put(`${p}n`, "one", { onlyIf })) !== null, "made");
  same(await bucket.put(`${p}n`, "two", { onlyIf }), null, "not made again");
  same(await (await withBody(bucket, `${p}n`)).text(), "one", "unchanged");
});

bucketCase("onlyIf of a get: without the body when it does not hold", async (bucket, p) => {
  const { etag } = await found(bucket.put(`${p}g`, "content"));
  const not = await found(bucket.get(`${p}g`, { onlyIf: { etagDoesNotMatch: etag } }));
  check(!("body" in not) && not.etag === etag && not.size === 7, "metadata only");
  same(await (await withBody(bucket, `${p}g`, { onlyIf: { etagMatches: etag } })).text(), "content", "matching");
  same(await (await withBody(bucket, `${p}g`, { onlyIf: { etagDoesNotMatch: "other" } })).text(), "content", "not the other");
  same(await bucket.get(`${p}none`, { onlyIf: { etagMatches: etag } }), null, "missing");
});

bucketCase("onlyIf dates", async (bucket, p) => {
  const { uploaded } = await found(bucket.put(`${p}d`, "content"));
  const [before, after] = [new Date(uploaded.getTime() - 10_000), new Date(uploaded.getTime() + 10_000)];
  const has = async (onlyIf: R2Conditional | Headers): Promise<boolean> => {
    const got = await found(bucket.get(`${p}d`, { onlyIf }));
    if (!("body" in got)) return false;
    await (got as R2ObjectBody).arrayBuffer();
    return true;
  };
  same([await has({ uploadedAfter: before }), await has({ uploadedAfter: after })], [true, false], "uploadedAfter");
  same([await has({ uploadedBefore: after }), await has({ uploadedBefore: before })], [true, false], "uploadedBefore");
  same(
    [
      await has(new Headers({ "if-modified-since": after.toUTCString() })),
      await has(new Headers({ "if-modified-since": before.toUTCString() })),
    ],
    [false, true],
    "if-modified-since",
  );
});

bucketCase("a failed condition of a large put leaves the object and the connection whole", async (bucket, p) => {
  await bucket.put(`${p}l`, "old");
  const data = bytesOf(3 << 20);
  same(await bucket.put(`${p}l`, data, { onlyIf: { etagMatches: "00000000000000000000000000000000" } }), null, "refused");
  same(await (await withBody(bucket, `${p}l`)).text(), "old", "unchanged");
});

for (const [name, size] of [
  ["small", 100],
  ["large", 3 << 20],
] as const) {
  bucketCase(`[P17] checksums of a ${name} object are checked, kept and told`, async (bucket, p) => {
    const data = bytesOf(size);
    const [md5, sha256] = [await digest("MD5", data), await digest("SHA-256", data)];
    await bucket.put(`${p}s`, data, { sha256 });
    const head = await found(bucket.head(`${p}s`));
    same([hex(head.checksums.md5), hex(head.checksums.sha256), hex(head.checksums.sha1)], [md5, sha256, "none"], "checksums");
    await bucket.put(`${p}m`, data, { md5 });
    same(hex((await found(bucket.head(`${p}m`))).checksums.md5), md5, "md5");
    await rejects(bucket.put(`${p}s`, bytesOf(size + 1), { sha256 }), /10037/, "another content");
    same((await found(bucket.head(`${p}s`))).etag, md5, "the old object stays");
  });
}

bucketCase("delete: one, many, missing, never a folder", async (bucket, p) => {
  for (const key of ["d/a", "d/b", "d/c/e"]) await bucket.put(p + key, key);
  await bucket.delete(`${p}d`);
  await bucket.delete(`${p}d/c/`);
  await bucket.delete(`${p}nothing`);
  same(
    (await bucket.list({ prefix: p })).objects.map(({ key }) => key),
    [`${p}d/a`, `${p}d/b`, `${p}d/c/e`],
    "folders stay",
  );
  await bucket.delete([`${p}d/a`, `${p}d/c/e`, `${p}nothing`]);
  same(
    (await bucket.list({ prefix: p })).objects.map(({ key }) => key),
    [`${p}d/b`],
    "many",
  );
  await bucket.delete(`${p}d/b`);
  same(await bucket.get(`${p}d/b`), null, "one");
});

bucketCase("list: all keys under a prefix in byte order", async (bucket, p) => {
  const keys = ["a", "b-c", "b.md", "b/1", "b/2/x", "b0", "B", "z", "ä", "😀", "\u{ff5e}"];
  for (const key of keys) await bucket.put(p + key, key);
  const encoded = (key: string): string => hex(new TextEncoder().encode(key).buffer as ArrayBuffer);
  const inOrder = [...keys].sort((x, y) => (encoded(x) < encoded(y) ? -1 : 1));
  const all = await bucket.list({ prefix: p });
  same([all.objects.map(({ key }) => key.slice(p.length)), all.truncated, all.delimitedPrefixes], [inOrder, false, []], "all");
  same(
    (await bucket.list({ prefix: `${p}b` })).objects.map(({ key }) => key.slice(p.length)),
    ["b-c", "b.md", "b/1", "b/2/x", "b0"],
    "a prefix inside a name",
  );
  same(
    (await bucket.list({ prefix: `${p}b/` })).objects.map(({ key }) => key.slice(p.length)),
    ["b/1", "b/2/x"],
    "a folder",
  );
  same((await bucket.list({ prefix: `${p}nothing/` })).objects, [], "nothing");
  const first = all.objects.find(({ key }) => key === `${p}a`);
  same([first?.size, first?.etag], [1, await digest("MD5", new TextEncoder().encode("a"))], "size and etag");
});

bucketCase("list: pages by limit and cursor, without gap or double", async (bucket, p) => {
  const keys = ["a/1", "a/2", "a/b/3", "b", "c/4", "d"];
  for (const key of keys) await bucket.put(p + key, key);
  for (const limit of [1, 2, 4]) {
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const page: R2Objects = await bucket.list({ prefix: p, limit, ...(cursor === undefined ? {} : { cursor }) });
      check(page.objects.length <= limit, "the limit holds");
      seen.push(...page.objects.map(({ key }) => key.slice(p.length)));
      cursor = page.truncated ? page.cursor : undefined;
    } while (cursor !== undefined);
    same(seen, keys, `pages of ${limit}`);
  }
  same(
    (await bucket.list({ prefix: p, startAfter: `${p}a/b/3` })).objects.map(({ key }) => key.slice(p.length)),
    ["b", "c/4", "d"],
    "startAfter",
  );
});

bucketCase("list: a delimiter groups", async (bucket, p) => {
  for (const key of ["skills/a/SKILL.md", "skills/a/x/y", "skills/b/SKILL.md", "skills/top.md", "SOUL.md"]) await bucket.put(p + key, key);
  const top = await bucket.list({ prefix: p, delimiter: "/" });
  same(
    [top.objects.map(({ key }) => key.slice(p.length)), top.delimitedPrefixes.map((key) => key.slice(p.length))],
    [["SOUL.md"], ["skills/"]],
    "top",
  );
  const skills = await bucket.list({ prefix: `${p}skills/`, delimiter: "/" });
  same(
    [skills.objects.map(({ key }) => key.slice(p.length)), skills.delimitedPrefixes.map((key) => key.slice(p.length))],
    [["skills/top.md"], ["skills/a/", "skills/b/"]],
    "one level",
  );
  const seen: string[] = [];
  let cursor: string | undefined;
  do {
    const page: R2Objects = await bucket.list({
      prefix: `${p}skills/`,
      delimiter: "/",
      limit: 1,
      ...(cursor === undefined ? {} : { cursor }),
    });
    seen.push(...page.objects.map(({ key }) => key.slice(p.length)), ...page.delimitedPrefixes.map((key) => key.slice(p.length)));
    cursor = page.truncated ? page.cursor : undefined;
  } while (cursor !== undefined);
  same(seen.sort(), ["skills/a/", "skills/b/", "skills/top.md"], "pages of groups");
});

bucketCase("list: metadata when asked for", async (bucket, p) => {
  await bucket.put(`${p}m`, "x", { httpMetadata: { contentType: "text/markdown" }, customMetadata: { a: "b" } });
  const rich = (await bucket.list({ prefix: p, include: ["httpMetadata", "customMetadata"] })).objects[0];
  same([rich?.httpMetadata?.contentType, rich?.customMetadata], ["text/markdown", { a: "b" }], "asked for");
});

bucketCase("keys that would be trouble on a disk", async (bucket, p) => {
  const keys = [
    ".env",
    ".git/config",
    "a/../b",
    "..",
    "a/./b",
    "trailing/",
    "double//slash",
    "100%",
    "%2Fescaped",
    "a%20b",
    "%",
    "%%",
    "line\nbreak",
    "tab\there",
    "space and + & ? # =",
    "quote\"s'",
    "back\\slash",
    "emoji-😀",
    "ünïcödé",
    "con:aux*",
    "~home",
    "-dash",
    "a".repeat(180),
    "agent:main:whatsapp:dm:+31612345678",
  ];
  for (const key of keys) await bucket.put(p + key, `content of ${key}`);
  for (const key of keys) same(await (await withBody(bucket, p + key)).text(), `content of ${key}`, `get ${JSON.stringify(key)}`);
  same((await bucket.list({ prefix: p })).objects.map(({ key }) => key.slice(p.length)).sort(), [...keys].sort(), "list");
  await bucket.delete(keys.map((key) => p + key));
  same((await bucket.list({ prefix: p })).objects, [], "deleted");
});

bucketCase("limits are refused with a code", async (bucket, p) => {
  await rejects(bucket.put(`${p}${"k".repeat(1100)}`, "x"), /10020/, "a long key");
  await rejects(bucket.put(`${p}m`, "x", { customMetadata: { a: "v".repeat(9000) } }), /10012/, "much metadata");
  await rejects(bucket.list({ limit: 1001 }), /10022/, "a large page");
});
