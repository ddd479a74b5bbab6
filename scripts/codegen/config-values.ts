/** The configuration's defaults and secret paths as plain data, so that a Worker needs no TypeBox to know them. */
import { CONFIG_DEFAULTS, NOT_SERVED_PATHS, SECRET_PATHS } from "../../protocol/src/config.ts";
import { BANNER } from "./names.ts";

export function emitConfigValues(): string {
  return (
    `// ${BANNER}\n/** Values of settings that are not set, and paths of settings whose values are never shown. */\n` +
    `export const CONFIG_DEFAULTS = ${JSON.stringify(CONFIG_DEFAULTS, null, 2)} as const;\n\n` +
    `/** Dot form, \`*\` for one segment. */\nexport const SECRET_PATHS = ${JSON.stringify(SECRET_PATHS)} as const;\n\n` +
    `/** Settings that nothing reads, with all below them. */\nexport const NOT_SERVED_PATHS = ${JSON.stringify(NOT_SERVED_PATHS)} as const;\n`
  );
}
