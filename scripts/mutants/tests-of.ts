/** Which tests should notice a mistake in a file, the fastest first. PURE: takes the import graph of all sources. */
import { importsOf, type Sources } from "../check/dependency-rules.ts";

/** What is run at once, with a time limit of its own. */
export type Suite =
  | { readonly runner: "types"; readonly project: string }
  | { readonly runner: "node"; readonly file: string }
  | { readonly runner: "workerd"; readonly folder: string }
  | { readonly runner: "cargo"; readonly package: string; readonly args: readonly string[] };

const NODE_TEST = /\.unit\.test\.ts$|^gateway\/test\/models\/.*\.test\.ts$/;
/** The nearest unit tests are enough: a test that imports everything notices little more and takes longer. The first that notices ends it. */
const MOST_FILES = 24;
const MOST_HOPS = 4;

/** Tests are not mutated: nothing tests them. */
export const isTestFile = (file: string): boolean => /\.test\.ts$|(?:^|[/_])tests?\.rs$/.test(file);

/** Files to the test files that import them, directly or over others, with the distance. */
export function importers(sources: Sources): (file: string) => ReadonlyMap<string, number> {
  const reverse = new Map<string, Set<string>>();
  for (const [file, text] of sources)
    if (file.endsWith(".ts"))
      for (const { target, typeOnly } of importsOf(file, text))
        if (target !== undefined && !typeOnly) reverse.set(target, (reverse.get(target) ?? new Set()).add(file));
  return (file) => {
    const distance = new Map([[file, 0]]);
    const queue = [file];
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      const far = distance.get(next) ?? 0;
      for (const importer of far < MOST_HOPS ? (reverse.get(next) ?? []) : [])
        if (!distance.has(importer)) {
          distance.set(importer, far + 1);
          queue.push(importer);
        }
    }
    distance.delete(file);
    return distance;
  };
}

/** Folders of tests in the Workers runtime that stand for a folder of the gateway; the first prefix counts. */
const WORKERD: readonly (readonly [prefix: string, folders: readonly string[]])[] = [
  ["gateway/src/app/", ["test/app", "test/kernel"]],
  ["gateway/src/calls/", ["test/features/nodes"]],
  ["gateway/src/features/agents/", ["test/features/agents"]],
  ["gateway/src/features/channels/", ["test/features/channels"]],
  ["gateway/src/features/media/", ["test/features/media"]],
  ["gateway/src/features/nodes/", ["test/features/nodes"]],
  ["gateway/src/features/search/", ["test/features/search"]],
  ["gateway/src/features/sessions/", ["test/features/sessions", "test/session"]],
  ["gateway/src/features/skills/", ["test/features/skills"]],
  ["gateway/src/features/spend/", ["test/features/spend"]],
  ["gateway/src/features/workspace/", ["test/features/workspace"]],
  ["gateway/src/kernel/", ["test/kernel"]],
  ["gateway/src/models/", ["test/features/models"]],
  ["gateway/src/policy/", ["test/features/approvals"]],
  ["gateway/src/session/", ["test/session"]],
  ["gateway/src/storage/", ["test/storage", "test/features/workspace"]],
  ["gateway/src/tools/", ["test/features/workspace", "test/features/nodes"]],
];
/** Tests in plain Node that take long, or that import nothing of what they test: they come after the unit tests. */
const FURTHER: readonly (readonly [prefix: string, file: string])[] = [
  ["gateway/src/session/machine/", "gateway/test/sim/session.sim.test.ts"],
  ["channels/kit/", "channels/discord/test/contract.e2e.test.ts"],
  ["channels/discord/", "channels/discord/test/contract.e2e.test.ts"],
];

/** `a/outbox.ts` and `b/outbox.unit.test.ts` are both about `outbox`. */
const nameOf = (file: string): string => /([^/]+?)(?:\.unit)?(?:\.test)?\.ts$/.exec(file)?.[1] ?? file;

/** Folders that both are in. */
function sharedWith(test: string, file: string): number {
  const [one, other] = [test.split("/"), file.split("/")];
  const at = one.findIndex((part, index) => part !== other[index]);
  return at === -1 ? one.length : at;
}

/** The suites for one file: what has the file's name first, then by distance, of the same distance the nearest folder first. Empty: nothing tests it, so it is not mutated. */
export function suitesOf(file: string, importersOf: (file: string) => ReadonlyMap<string, number>): Suite[] {
  const rust = /^crates\/([^/]+)\//.exec(file)?.[1];
  if (rust !== undefined) {
    const programs = [["--lib"], ...(RUST_PROGRAMS[rust] ?? []).map((name) => ["--test", name])];
    return programs.map((args) => ({ runner: "cargo", package: rust, args }));
  }
  const near = [...importersOf(file)]
    .filter(([test]) => NODE_TEST.test(test))
    .map(([test, far]): [string, number] => [test, nameOf(test) === nameOf(file) ? 0 : far])
    .sort((a, b) => a[1] - b[1] || sharedWith(b[0], file) - sharedWith(a[0], file));
  const further = FURTHER.filter(([prefix]) => file.startsWith(prefix)).map(([, test]) => test);
  // The Workers runtime takes twenty times as long, so it comes last: it is asked only about what plain Node does not notice.
  const folders = WORKERD.find(([prefix]) => file.startsWith(prefix))?.[1] ?? [];
  // A mistake that the compiler refuses is no mistake, in TypeScript as in Rust.
  const project = /^(?:gateway|channels)(?=\/)/.exec(file)?.[0];
  const types = project === undefined ? [] : [{ runner: "types" as const, project }];
  const tests = [
    ...[...near.slice(0, MOST_FILES).map(([test]) => test), ...further].map((test) => ({ runner: "node" as const, file: test })),
    ...folders.map((folder) => ({ runner: "workerd" as const, folder })),
  ];
  return tests.length === 0 ? [] : [...types, ...tests];
}

/** The test programs of each crate beside its unit tests, the fastest first. */
const RUST_PROGRAMS: Readonly<Record<string, readonly string[]>> = {
  "gsv-link": ["link"],
  "gsv-tools": ["tools", "bash", "bash_landlock", "bash_bubblewrap", "survival"],
};
