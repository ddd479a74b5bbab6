/** The lines of the golden file: what of a request and of a binding stays the same from run to run. */
import type { Binding } from "./account.ts";
import type { Row } from "./api.ts";

export const HEX = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b[0-9a-f]{32}\b/g;

/** A binding without ids and without what changes with each build. */
export const plain = ({ name, type, ...more }: Binding): string =>
  `${name} ${type} ${String(more["service"] ?? more["bucket_name"] ?? more["queue_name"] ?? more["class_name"] ?? more["index_name"] ?? "")}`.trim();

/** What of a request's body belongs to the golden file. */
export function summary(path: string, method: string, json: Row): string {
  if (method === "GET" || method === "DELETE") return "";
  if (/\/workers\/scripts\/[^/]+$/.test(path)) {
    const bindings = (json["bindings"] ?? []) as readonly Binding[];
    const classes = Object.keys((json["exports"] ?? {}) as object);
    return `\n${[...bindings.map((binding) => `    ${plain(binding)}`).sort(), `    exports ${classes.join(" ")}`].join("\n")}`;
  }
  const shown = JSON.stringify(json)
    .replaceAll(HEX, "ID")
    .replaceAll(/gsv [a-z]+ [0-9A-Z]{26}[^"]*/g, "MESSAGE");
  return shown === "{}" ? "" : ` ${shown}`;
}
