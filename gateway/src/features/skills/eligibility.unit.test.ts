import assert from "node:assert/strict";
import { test } from "node:test";
import { asNodeId, type SkillEntryConfig, type SkillState } from "../../../../protocol/gen/types.ts";
import { builtinFile, BUILTIN_FOLDERS } from "../../storage/skills/builtin/index.ts";
import { type Approval, type Machine, standing } from "./eligibility.ts";
import { digestOf, EMPTY_SHA256, inForce, isSkillName, type SkillFolder, skillPath, type SkillHead } from "../../storage/skills/folder.ts";
import { readHead } from "../../storage/skills/front-matter.lazy.ts";
import { visible } from "../../prompt/hidden.ts";

const head = (more: Partial<SkillHead> = {}): SkillHead => ({
  description: "d",
  always: false,
  capabilities: [],
  bins: [],
  install: [],
  problems: [],
  ...more,
});
const machine = (nodeId: string, online: boolean, ...hostCapabilities: string[]): Machine => ({
  nodeId: asNodeId(nodeId),
  online,
  hostCapabilities,
});
const lap = machine("lap", true, "shell.exec", "filesystem.read");
const pi = machine("pi", true, "filesystem.read");
const off = machine("off", false, "shell.exec", "text.search");
const SHELL = { capabilities: ["shell.exec"] };
const BOTH = { capabilities: ["shell.exec", "text.search"] };

interface Row {
  readonly what: string;
  readonly head?: Partial<SkillHead>;
  readonly entry?: SkillEntryConfig;
  readonly approval?: Approval;
  readonly problems?: readonly string[];
  readonly machines?: readonly Machine[];
  readonly state: SkillState;
  readonly hosts?: readonly string[];
  readonly says?: RegExp;
}
const ROWS: readonly Row[] = [
  { what: "needs nothing, no machine", state: "ready", hosts: [] },
  { what: "needs nothing, machines", machines: [pi, lap, off], state: "ready", hosts: ["lap", "pi"] },
  { what: "one machine has it", head: SHELL, machines: [lap, pi], state: "ready", hosts: ["lap"] },
  {
    what: "only a disconnected machine has it",
    head: { capabilities: ["text.search"] },
    machines: [lap, off],
    state: "unmet",
    says: /`lap` lacks `text\.search`/,
  },
  {
    what: "two machines have it together, none alone",
    head: BOTH,
    machines: [lap, machine("s", true, "text.search")],
    state: "unmet",
    says: /`s` lacks `shell\.exec`/,
  },
  { what: "none connected", head: SHELL, machines: [off], state: "unmet", says: /none is connected/ },
  { what: "`always` skips the machines", head: { ...SHELL, always: true }, state: "ready", hosts: [] },
  { what: "the owner sets always", head: SHELL, entry: { always: true }, state: "ready" },
  { what: "the owner unsets always", head: { ...SHELL, always: true }, entry: { always: false }, state: "unmet" },
  { what: "the owner requires more", entry: { requires: SHELL }, machines: [pi], state: "unmet" },
  { what: "the owner requires less", head: BOTH, entry: { requires: SHELL }, machines: [lap], state: "ready", hosts: ["lap"] },
  {
    what: "disabled has precedence",
    head: { problems: ["broken"] },
    entry: { enabled: false },
    approval: "changed",
    state: "disabled",
    says: /skills\.entries\.mail\.enabled/,
  },
  { what: "enabled has no effect", entry: { enabled: true }, state: "ready" },
  {
    what: "invalid has precedence over changed",
    head: { problems: ["Line 2: no."] },
    approval: "changed",
    state: "invalid",
    says: /Line 2/,
  },
  { what: "a problem of the folder", problems: ["SKILL.md is missing."], state: "invalid", says: /missing/ },
  { what: "changed has precedence over machines", head: SHELL, approval: "changed", state: "changed", says: /gsv skills approve mail/ },
  { what: "always does not skip the approval", head: { always: true }, entry: { always: true }, approval: "changed", state: "changed" },
  { what: "[F12] never approved", approval: "unseen", state: "changed", says: /need your approval.*gsv skills approve mail/ },
  {
    what: "[F52] programs are not looked for",
    head: { bins: ["gh", "jq"] },
    machines: [lap],
    state: "unchecked",
    hosts: ["lap"],
    says: /^Ready to use\. Needs `gh` and `jq`; GSV does not check whether they are installed\.$/,
  },
  {
    what: "[F52] `always` does not look for programs",
    head: { bins: ["gh"], always: true },
    state: "unchecked",
    says: /^Ready to use\. Needs `gh`; GSV does not check whether it is installed\.$/,
  },
  { what: "[F52] programs don't hide that a machine is missing", head: { ...SHELL, bins: ["gh"] }, state: "unmet" },
  { what: "another name in the front matter", head: { name: "gmail" }, state: "ready", says: /names it `gmail`/ },
];
for (const row of ROWS)
  test(`[SK2] ${row.what}`, () => {
    const result = standing(
      { name: "mail", head: head(row.head), problems: row.problems ?? [], approval: row.approval ?? "approved" },
      row.entry,
      row.machines ?? [],
    );
    assert.equal(result.state, row.state);
    if (row.hosts) assert.deepEqual(result.eligibleHosts, row.hosts);
    if (row.says) assert.match(result.reasons.join("\n"), row.says);
    else assert.ok(row.state === "ready" ? result.reasons.length === 0 : result.reasons.length > 0);
  });

test("[SK1] built-in skills are valid, small, and name only existing tools", () => {
  const folders = BUILTIN_FOLDERS;
  assert.ok(folders.length >= 5);
  for (const { name, head: own } of folders) {
    const file = builtinFile(`skills/${name}/SKILL.md`);
    assert.deepEqual([own.problems, own.name], [[], name]);
    assert.deepEqual(own, readHead(file?.content ?? ""), `${name}: the text says what the data says`);
    assert.ok(file !== undefined && file.size <= 4096, `${name} has ${file?.size} bytes`);
    const known = new Set(["ReadFile", "WriteFile", "EditFile", "ListFiles", "LogsGet"]);
    for (const [, tool] of file.content.matchAll(/gsv__([A-Za-z]+)/g)) assert.ok(known.has(tool ?? ""), `${name}: gsv__${tool}`);
    for (const [, tool] of file.content.matchAll(/NODE__([A-Za-z]+)/g))
      assert.match(tool ?? "", /^(?:Bash|Process|Read|Edit|Write|Glob|Grep)$/);
  }
  assert.equal(builtinFile("skills/__proto__/SKILL.md"), undefined);
});
test("[SK1] names and paths are checked", () => {
  for (const good of ["mail", "a", "A.b_c-1", "x".repeat(64)]) assert.ok(isSkillName(good), good);
  for (const bad of ["", ".a", "-a", "_a", "a b", "a/b", "..", "ä", "x".repeat(65), "a\n"]) assert.ok(!isSkillName(bad), bad);
  assert.deepEqual(skillPath("skills/mail/a/b.md"), { name: "mail", file: "a/b.md" });
  for (const none of ["skills", "skills/mail", "skills/mail/", "skills//a", "memory/skills/a/b", "xskills/a/b"])
    assert.equal(skillPath(none), undefined, none);
});
test("[SK1] [F49] the first skill of a name is used, and an agent's own skills are listed first", () => {
  const folder = (scope: SkillFolder["scope"], name: string): SkillFolder => ({
    scope,
    name,
    files: [],
    sha256: "",
    head: head(),
    problems: [],
  });
  const all = inForce(
    [folder("agent", "b")],
    [folder("global", "b"), folder("global", "a")],
    [folder("builtin", "a"), folder("builtin", "c")],
  );
  assert.deepEqual(
    all.map(({ scope, name }) => `${scope}/${name}`),
    ["agent/b", "global/a", "builtin/c"],
  );
});
test("[SK3] the digest covers names and contents, in any order", async () => {
  const of = (files: Record<string, string>): Promise<string> => digestOf(new Map(Object.entries(files)));
  assert.equal(await of({ a: "1", b: "2" }), await of({ b: "2", a: "1" }));
  assert.equal(await of({}), EMPTY_SHA256);
  const all = [{ a: "1", b: "2" }, { a: "2", b: "1" }, { a: "1" }, { ab: "1", "": "2" }, {}, { a: "1", b: "2", c: "" }];
  assert.equal(new Set(await Promise.all(all.map((files) => of({ ...files })))).size, all.length);
});
test("[SK1] invisible characters are written out once", () => {
  for (const [given, shown] of [
    ["a\u202eb", "a[U+202E]b"],
    ["👩‍👧 ok", "👩‍👧 ok"],
    ["a\u200db", "a[U+200D]b"],
    ["\ue000", "\ue000"],
    ["tag\u{e0041}", "tag[U+E0041]"],
    [" a\n\n b\t", "a b"],
    ["abcdef", "abcdef"],
  ] as const)
    assert.equal(visible(given, 100), shown);
  assert.equal(visible("abcdef", 4), "abc…");
});
test("[SK1] any text is parsed quickly", () => {
  const pieces = [
    "---\n",
    "name: x\n",
    "description: d\n",
    "- ",
    "  ",
    "{",
    "}",
    "[",
    "]",
    "&a",
    "*a",
    "!!t ",
    ": ",
    "\t",
    "\u202e",
    "? ",
    "|\n",
    ">\n",
    "'",
    '"',
    "#",
    "\n",
    "<<: ",
    "__proto__: ",
    "\0",
  ];
  let seed = 7;
  const next = (): number => {
    seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
    return seed;
  };
  for (let round = 0; round < 3000; round++) {
    let text = "---\n";
    for (let length = next() % 60; length > 0; length--) text += pieces[(next() >> 8) % pieces.length];
    const found = readHead(`${text}\n---\n`);
    assert.ok(Array.isArray(found.problems) && found.problems.length <= 8 && found.description.length <= 8192);
    for (const problem of found.problems) assert.doesNotMatch(problem, /[\u202e\0]/);
  }
});
