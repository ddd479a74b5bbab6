/** Packs that are on and cannot work, because a setting or a secret of theirs is not set: a warning, since it may be set later (rule PK2). PURE. */
import type { GsvConfig } from "../../../../protocol/gen/types.ts";
import { parsePath } from "../../kernel/config/paths.ts";
import type { Packs } from "../../packs/pack.ts";

/** The warnings about a change of `path`: those of the packs that it is about and that are on after it. */
export function missingOfPacks(path: string, { packs }: Readonly<GsvConfig>, list: Packs): readonly string[] {
  const changed = changedPack(path);
  if (changed === undefined) return [];
  const { enabled = [], settings = {}, secrets = {} } = packs ?? {};
  return list.flatMap(({ name, ...pack }) => {
    if (!enabled.includes(name) || (changed !== "all" && changed !== name)) return [];
    const unset = (declared: object, values: Readonly<Record<string, string>> = {}): readonly string[] =>
      Object.keys(declared).filter((key) => values[key] === undefined);
    const missing = [
      ...unset(pack.settings, settings[name]).map((key) => ({ path: `packs.settings.${name}.${key}`, value: "VALUE" })),
      // A secret is read from the terminal or a pipe.
      ...unset(pack.secrets, secrets[name]).map((key) => ({ path: `packs.secrets.${name}.${key}`, value: "-" })),
    ];
    if (missing.length === 0) return [];
    const paths = missing.map((setting) => setting.path).join(" and ");
    const commands = missing.map((setting) => `\`gsv config set ${setting.path} ${setting.value}\``).join(", ");
    return [`The pack ${name} is on, and its tools fail until ${paths} ${missing.length === 1 ? "is" : "are"} set: ${commands}.`];
  });
}
/** `path` in its canonical form. Undefined: it is about no pack. */
function changedPack(path: string): string | undefined {
  const [packs, part, name] = parsePath(path) ?? [];
  if (packs !== "packs") return undefined;
  return part === "settings" || part === "secrets" ? (name ?? "all") : "all";
}
