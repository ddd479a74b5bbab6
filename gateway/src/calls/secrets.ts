/** PURE. Secrets in what tools give: hidden before a result is stored, shown to a model or handed to a client (promises S5). */
import { GSV_TOKEN, HIDDEN } from "../../../protocol/runtime/secret-shapes.ts";

export const hideTokens = (text: string): string => (text.includes("gsv_") ? text.replace(GSV_TOKEN, HIDDEN) : text);

/** A copy whose texts, names of fields included, went through `hide`. The bytes of images are left alone. */
export function hideIn(value: unknown, hide: (text: string) => string): unknown {
  if (typeof value === "string") return hide(value);
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => hideIn(item, hide));
  const isImage = Reflect.get(value, "type") === "image";
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [hide(name), isImage && name === "data" ? item : hideIn(item, hide)]),
  );
}
