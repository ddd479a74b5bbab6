/** Import circles between files: each is a finding that names its files. Type imports count too. PURE: takes texts, gives findings. */
import { posix } from "node:path";
import { blank, type Finding, importsOf, type Sources } from "./dependency-rules.ts";

/** Files that each file imports. */
export type Graph = ReadonlyMap<string, ReadonlySet<string>>;

const IN_SCOPE = /^(?:gateway|channels)\/.*\.(?:ts|js)$/;
const RUST_FILE = /^((?:crates\/[^/]+|cli)\/src)\/(.*)\.rs$/;

export function typescriptGraph(sources: Sources): Graph {
  const graph = new Map<string, Set<string>>();
  for (const [file, text] of sources) {
    if (!IN_SCOPE.test(file)) continue;
    const targets = importsOf(file, text).flatMap(({ target }) => (target !== undefined && sources.has(target) ? [target] : []));
    graph.set(file, new Set(targets));
  }
  return graph;
}

/** `use crate::...` and `use super::...` of modules; declarations (`mod x;`) and code of unit tests do not count. */
export function rustGraph(sources: Sources): Graph {
  const graph = new Map<string, Set<string>>();
  const files = new Map<string, string>();
  for (const file of sources.keys()) {
    const module = moduleOf(file);
    if (module !== undefined) files.set(`${module.root} ${module.path.join("::")}`, file);
  }
  for (const [file, text] of sources) {
    const module = moduleOf(file);
    if (module === undefined) continue;
    const targets = new Set<string>();
    for (const path of usedPaths(blank(withoutTests(text), { comments: true, strings: false }), module.path)) {
      const target = fileOf(files, module.root, path);
      if (target !== undefined && target !== file) targets.add(target);
    }
    graph.set(file, targets);
  }
  return graph;
}

function moduleOf(file: string): { readonly root: string; readonly path: readonly string[] } | undefined {
  const match = RUST_FILE.exec(file);
  if (!match) return undefined;
  const path = (match[2] ?? "").split("/").filter((part) => part !== "mod");
  return { root: match[1] ?? "", path: path.length === 1 && ["lib", "main"].includes(path[0] ?? "") ? [] : path };
}
/** Unit tests of a file stand at its end. */
const withoutTests = (text: string): string => text.split(/^#\[cfg\(test\)\]$/m)[0] ?? "";

/** Every path of the `use` statements that begins with `crate` or `super`, groups unfolded. */
function usedPaths(code: string, own: readonly string[]): string[][] {
  const paths: string[][] = [];
  for (const [, statement = ""] of code.matchAll(/\buse\s+((?:crate|super)::[^;]*);/g))
    for (const path of unfolded(statement.replaceAll(/\s+/g, " "))) {
      const parts = path.split("::").map((part) => part.trim().replace(/ as .*/, ""));
      const base = [...own];
      if (parts[0] === "crate") base.length = 0;
      while (parts[0] === "crate" || parts[0] === "super") if (parts.shift() === "super") base.pop();
      paths.push([...base, ...parts]);
    }
  return paths;
}
function unfolded(path: string): string[] {
  const open = path.indexOf("{");
  if (open < 0) return [path];
  const before = path.slice(0, open);
  const inside = path.slice(open + 1, path.lastIndexOf("}"));
  const parts: string[] = [];
  let depth = 0;
  let part = "";
  for (const letter of inside) {
    if (letter === "{") depth += 1;
    if (letter === "}") depth -= 1;
    if (letter === "," && depth === 0) {
      parts.push(part);
      part = "";
    } else part += letter;
  }
  return [...parts, part].filter((it) => it.trim() !== "").flatMap((it) => unfolded(before + it.trim()));
}
/** The file of the longest module that the path names; the crate's root re-exports everything and counts for nothing. */
function fileOf(files: ReadonlyMap<string, string>, root: string, path: readonly string[]): string | undefined {
  for (let length = path.length; length > 0; length--) {
    const file = files.get(`${root} ${path.slice(0, length).join("::")}`);
    if (file !== undefined) return file;
  }
  return undefined;
}

/** Groups of files that reach each other, each in alphabetical order. */
export function circlesOf(graph: Graph): string[][] {
  const order = new Map<string, number>();
  const low = new Map<string, number>();
  const stack: string[] = [];
  const open = new Set<string>();
  const circles: string[][] = [];
  const visit = (file: string): void => {
    order.set(file, order.size);
    let lowest = order.get(file) ?? 0;
    stack.push(file);
    open.add(file);
    for (const next of graph.get(file) ?? []) {
      if (!graph.has(next)) continue;
      if (!order.has(next)) {
        visit(next);
        lowest = Math.min(lowest, low.get(next) ?? lowest);
      } else if (open.has(next)) lowest = Math.min(lowest, order.get(next) ?? lowest);
    }
    low.set(file, lowest);
    if (lowest !== order.get(file)) return;
    const group: string[] = [];
    for (let member = stack.pop(); member !== undefined; member = member === file ? undefined : stack.pop()) {
      open.delete(member);
      group.push(member);
    }
    if (group.length > 1) circles.push(group.sort());
  };
  for (const file of [...graph.keys()].sort()) if (!order.has(file)) visit(file);
  return circles.sort((a, b) => (a[0] ?? "").localeCompare(b[0] ?? ""));
}

/** A shortest way round, from the first file back to itself. */
function wayRound(graph: Graph, circle: readonly string[]): string[] {
  const start = circle[0] ?? "";
  const from = new Map<string, string>();
  const queue = [start];
  for (let file = queue.shift(); file !== undefined; file = queue.shift())
    for (const next of graph.get(file) ?? []) {
      if (next === start) {
        const way = [start];
        for (let step = file; step !== start; step = from.get(step) ?? start) way.splice(1, 0, step);
        return [...way, start];
      }
      if (circle.includes(next) && !from.has(next)) {
        from.set(next, file);
        queue.push(next);
      }
    }
  return [...circle];
}

export const circleFindings = (graph: Graph): Finding[] =>
  circlesOf(graph).map((circle) => {
    const way = wayRound(graph, circle).map((file) => posix.relative(posix.dirname(circle[0] ?? ""), file));
    const message = `${circle.length} files import each other in a circle, for example ${way.join(" -> ")}. Move what both need into a file of its own.`;
    return { rule: "circles", file: circle[0] ?? "", line: 1, message };
  });
