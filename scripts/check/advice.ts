/**
 * Whether each setting that a text names exists: in `gsv config get|set|unset PATH`, and alone in backticks. PURE: takes the texts and
 * the contract's cells, gives findings.
 */
import { type Cell, fieldsOf, resolveCell } from "../../protocol/runtime/cells.ts";
import type { Finding, Sources } from "./dependency-rules.ts";

export interface Contract {
  /** The whole configuration. */
  readonly root: Cell;
  /** Methods and reasons, which look like settings: `skills.status`, `session.busy`. */
  readonly otherNames: ReadonlySet<string>;
}

/** A name in capitals, a star, and what a program inserts may be any name. */
const ANY = /^(?:[A-Z][A-Z_]*|\*|.*\$\{.*|.*\{.*)$/;

/** Whether a dotted path is one of a setting. */
export function isSetting(path: string, { root }: Contract): boolean {
  let cells: readonly Cell[] = [root];
  for (const name of path.split(".")) {
    const isAny = ANY.test(name);
    cells = cells.flatMap((given): readonly Cell[] => {
      const cell = resolveCell(given);
      if (cell[0] === "map" || cell[0] === "array") return [cell[1]];
      if (cell[0] === "json") return [cell];
      if (cell[0] !== "struct") return [];
      return fieldsOf(cell[1]).flatMap((field) => (isAny || field.name === name ? [field.cell] : []));
    });
  }
  return cells.length > 0;
}

const COMMAND = /\bgsv config (?:get|set|unset) ([A-Za-z][^\s`"'\\),;]*)/g;
const ALONE = /`([a-z][A-Za-z]*(?:\.(?:[A-Za-z*]+|\$\{[^}`]*\}))+)`/g;
const isText = (file: string): boolean =>
  /^(?:README\.md|docs\/|(?:gateway|protocol|channels\/\w+|cli)\/(?:src|spec)\/|crates\/[\w-]+\/src\/|scripts\/start)/.test(file) &&
  !/\.test\.ts$|_tests\.rs$|\/gen\//.test(file) &&
  !file.startsWith("crates/gsv-protocol/");

export function adviceFindings(sources: Sources, contract: Contract): Finding[] {
  const root = resolveCell(contract.root);
  const top = new Set(root[0] === "struct" ? fieldsOf(root[1]).map((field) => field.name) : []);
  const isWrong = (path: string, alone: boolean): boolean => {
    if (alone && (!top.has(path.split(".")[0] ?? "") || contract.otherNames.has(path))) return false;
    return !ANY.test(path) && !isSetting(path, contract);
  };
  return [...sources].flatMap(([file, text]) =>
    !isText(file)
      ? []
      : text.split("\n").flatMap((line, at): Finding[] => {
          const named = [
            ...[...line.matchAll(COMMAND)].map(([, path = ""]) => ({ path: path.replace(/[.:]+$/, ""), alone: false })),
            ...[...line.matchAll(ALONE)].map(([, path = ""]) => ({ path, alone: true })),
          ];
          return named
            .filter(({ path, alone }) => isWrong(path, alone))
            .map(({ path }) => ({ rule: "advice", file, line: at + 1, message: `There is no setting ${path}.` }));
        }),
  );
}
