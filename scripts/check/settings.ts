/**
 * Whether each setting of the contract is read by the gateway, or is listed as not served. PURE: takes the contract's cells and the
 * places that refer to a field, gives findings.
 */
import { type Cell, fieldsOf, resolveCell } from "../../protocol/runtime/cells.ts";
import type { Finding } from "./dependency-rules.ts";

export interface Setting {
  /** Dotted, with `*` for a key or a position: `agents.list.*.heartbeat`. */
  readonly path: string;
  /** The generated type that has the field. */
  readonly type: string;
  readonly field: string;
}

/** Every setting of a type of the contract, containers before what they contain. Types with one reader of the whole are leaves. */
export function settingsOf(root: string, cellOf: (type: string) => Cell): Setting[] {
  const settings: Setting[] = [];
  const visit = (given: Cell, path: string, within: readonly string[]): void => {
    if (given[0] === "array" || given[0] === "map") return visit(given[1], `${path}.*`, within);
    if (given[0] !== "ref" || within.includes(given[1])) return;
    const cell = resolveCell(cellOf(given[1]));
    if (cell[0] === "array" || cell[0] === "map") return visit(cell, path, within);
    if (cell[0] !== "struct") return;
    for (const field of fieldsOf(cell[1])) {
      const here = path === "" ? field.name : `${path}.${field.name}`;
      settings.push({ path: here, type: given[1], field: field.name });
      visit(field.cell, here, [...within, given[1]]);
    }
  };
  visit(["ref", root as never], "", []);
  return settings;
}

/** The line, from 0, on which a generated type declares a field; undefined: it does not. */
export function lineOfField(types: string, { type, field }: Setting): number | undefined {
  const lines = types.split("\n");
  const start = lines.indexOf(`export type ${type} = {`);
  const end = lines.indexOf("};", start);
  const line = lines.findIndex((text, at) => at > start && at < end && text.trimStart().match(/^(\w+)\??:/)?.[1] === field);
  return start < 0 || line < 0 ? undefined : line;
}

/** Files that name settings without acting on them: validation, and the type of the settings in force. */
const NO_READERS = ["gateway/src/kernel/config/change.ts", "gateway/src/ports/run-context.ts"];
const isReader = (file: string): boolean => file.startsWith("gateway/src/") && !file.endsWith(".test.ts") && !NO_READERS.includes(file);

/** `references`: the files that refer to a setting, from the root. */
export function settingFindings(
  settings: readonly Setting[],
  notServed: readonly string[],
  references: (setting: Setting) => readonly string[],
): Finding[] {
  const isListed = (path: string): boolean => notServed.some((listed) => path === listed || path.startsWith(`${listed}.`));
  const finding = (message: string): Finding => ({ rule: "settings", file: "protocol/src/config.ts", line: 1, message });
  const unknown = notServed.filter((listed) => !settings.some(({ path }) => path === listed));
  return [
    ...unknown.map((listed) => finding(`NOT_SERVED_PATHS names ${listed}, and there is no such setting.`)),
    ...settings.flatMap((setting) => {
      const { path } = setting;
      const isRead = references(setting).some(isReader);
      if (!isRead && !isListed(path)) return [finding(`Nothing reads ${path}. Read it, or add it to NOT_SERVED_PATHS.`)];
      return isRead && notServed.includes(path) ? [finding(`${path} is read. Remove it from NOT_SERVED_PATHS.`)] : [];
    }),
  ];
}
