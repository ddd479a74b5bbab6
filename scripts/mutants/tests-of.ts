/** Which tests should notice a mistake in a file, the fastest first. PURE: takes the import graph of all sources. */
import { importsOf, type Sources } from "../check/dependency-rules.ts";

export type Suite =
  | { readonly runner: "node"; readonly files: readonly string[] }
  | { readonly runner: "workerd"; readonly paths: readonly string[] }
  | { readonly runner: "cargo"; readonly package: string; readonly args: readonly string[] };

const NODE_TEST = /\.unit\.test\.ts$|^gateway\/test\/models\/.*\.test\.ts$/;
/** The nearest unit tests are enough: a test that imports everything notices little more and takes longer. */
const MOST_FILES = 8;
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

/** Folders of tests in the Workers runtime that stand for a folder of the gateway; the longest prefix counts. */
const WORKERD: readonly (readonly [folder: string, paths: readonly string[]])[] = [
  ["gateway/src/app/", ["test/app", "test/kernel"]],
  ["gateway/src/calls/", ["test/features/nodes"]],
  ["gateway/src/features/agents/", ["test/features/agents"]],
  ["gateway/src/features/channels/", ["test/features/channels"]],
  ["gateway/src/features/media/", ["test/features/media"]],
  ["gateway/src/features/nodes/", ["test/features/nodes"]],
  ["gateway/src/features/search/", ["test/features/search"]],
  ["gateway/src/features/sessions/", ["test/features/sessions", "test/session"]],
  ["gateway/src/features/skills/", ["test/features/skills"]],
  ["gateway/src/features/workspace/", ["test/features/workspace"]],
  ["gateway/src/kernel/", ["test/kernel"]],
  ["gateway/src/session/", ["test/session"]],
  ["gateway/src/storage/", ["test/storage", "test/features/workspace"]],
  ["gateway/src/tools/", ["test/features/workspace", "test/features/nodes"]],
];

/** The suites for one file. Empty: nothing tests it, so it is not mutated. */
export function suitesOf(file: string, importersOf: (file: string) => ReadonlyMap<string, number>): Suite[] {
  const rust = /^crates\/([^/]+)\//.exec(file);
  if (rust !== null)
    return [
      { runner: "cargo", package: rust[1] ?? "", args: ["--lib"] },
      { runner: "cargo", package: rust[1] ?? "", args: [] },
    ];
  const near = [...importersOf(file)].filter(([test]) => NODE_TEST.test(test)).sort((a, b) => a[1] - b[1]);
  const files = near.slice(0, MOST_FILES).map(([test]) => test);
  // The Workers runtime takes twenty times as long, so it comes last: it is asked only about what plain Node does not notice.
  const folder = WORKERD.find(([prefix]) => file.startsWith(prefix));
  return [
    ...(files.length === 0 ? [] : [{ runner: "node" as const, files }]),
    ...(file.startsWith("gateway/src/session/machine/")
      ? [{ runner: "node" as const, files: ["gateway/test/sim/session.sim.test.ts"] }]
      : []),
    ...(folder === undefined ? [] : [{ runner: "workerd" as const, paths: folder[1] }]),
  ];
}

/** The same tests in as few runs as possible. */
export function joined(suites: readonly Suite[]): Suite[] {
  const files = new Set(suites.flatMap((suite) => (suite.runner === "node" ? suite.files : [])));
  const paths = new Set(suites.flatMap((suite) => (suite.runner === "workerd" ? suite.paths : [])));
  const packages = new Set(suites.flatMap((suite) => (suite.runner === "cargo" ? [suite.package] : [])));
  return [
    ...(files.size === 0 ? [] : [{ runner: "node" as const, files: [...files].sort() }]),
    ...(paths.size === 0 ? [] : [{ runner: "workerd" as const, paths: [...paths].sort() }]),
    ...[...packages].map((name) => ({ runner: "cargo" as const, package: name, args: [] })),
  ];
}
