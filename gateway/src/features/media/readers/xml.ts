/**
 * Reads XML and HTML as a sequence of tags and texts. PURE. Not a validating parser: it takes what office programs and mailers write,
 * resolves no entity but characters (so nothing can expand), and gives what it can of damaged input.
 */
export type XmlPart =
  | { readonly kind: "open"; readonly name: string; readonly attributes: string; readonly isEmpty: boolean }
  | { readonly kind: "close"; readonly name: string }
  | { readonly kind: "text"; readonly text: string };

const NAMED: Readonly<Record<string, string>> = {
  amp: "&",
  lt: "<",
  gt: ">",
  quot: '"',
  apos: "'",
  nbsp: " ",
  ndash: "–",
  mdash: "—",
  hellip: "…",
  euro: "€",
  pound: "£",
  copy: "©",
  reg: "®",
  trade: "™",
  bull: "•",
  middot: "·",
  laquo: "«",
  raquo: "»",
  lsquo: "‘",
  rsquo: "’",
  ldquo: "“",
  rdquo: "”",
  auml: "ä",
  ouml: "ö",
  uuml: "ü",
  Auml: "Ä",
  Ouml: "Ö",
  Uuml: "Ü",
  szlig: "ß",
  eacute: "é",
  egrave: "è",
  agrave: "à",
  ccedil: "ç",
};
/** Replaces references to characters; others stay as they are. */
export const unescaped = (text: string): string =>
  text.includes("&")
    ? text.replace(/&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|([A-Za-z]{2,8}));/g, (whole, decimal, hex, name) => {
        if (typeof name === "string") return (Object.hasOwn(NAMED, name) ? NAMED[name] : undefined) ?? whole;
        const code = typeof decimal === "string" ? Number(decimal) : Number.parseInt(String(hex), 16);
        return code > 0 && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff) ? String.fromCodePoint(code) : "�";
      })
    : text;

/** The value of an attribute of an opened tag. */
export function attribute(attributes: string, name: string): string | undefined {
  for (let at = attributes.indexOf(name); at >= 0; at = attributes.indexOf(name, at + 1)) {
    if (at > 0 && !/\s/.test(attributes.charAt(at - 1))) continue;
    const rest = /^\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'>]+))/.exec(attributes.slice(at + name.length, at + name.length + 8_192));
    if (rest) return unescaped(rest[1] ?? rest[2] ?? rest[3] ?? "");
  }
  return undefined;
}

/** What follows the `<` of a tag. */
const TAG = /(\/?)([A-Za-z_][\w.:-]*)/y;
/** Tags and texts in order. Comments, declarations and processing instructions are left out. Linear in the size of the input. */
export function* xmlParts(source: string): Generator<XmlPart> {
  for (let at = 0; ; ) {
    const tag = source.indexOf("<", at);
    const end = tag < 0 ? source.length : tag;
    if (end > at) yield { kind: "text", text: unescaped(source.slice(at, end)) };
    if (tag < 0) return;
    const skip = (from: string, to: string): number | undefined => {
      if (!source.startsWith(from, tag)) return undefined;
      const found = source.indexOf(to, tag + from.length);
      return found === -1 ? source.length : found + to.length;
    };
    const data = skip("<![CDATA[", "]]>");
    if (data !== undefined) yield { kind: "text", text: source.slice(tag + 9, Math.max(tag + 9, data - 3)) };
    const skipped = data ?? skip("<!--", "-->") ?? skip("<!", ">") ?? skip("<?", ">");
    if (skipped !== undefined) {
      at = skipped;
      continue;
    }
    // The name comes first: a search for the end of every `<` that is no tag would make the work quadratic.
    TAG.lastIndex = tag + 1;
    const [, slash, name] = TAG.exec(source) ?? [];
    if (name === undefined) {
      yield { kind: "text", text: "<" };
      at = tag + 1;
      continue;
    }
    const close = tagEnd(source, TAG.lastIndex);
    const inside = source.slice(tag + 1, close);
    if (slash === "/") yield { kind: "close", name };
    else yield { kind: "open", name, attributes: inside.slice(name.length), isEmpty: inside.endsWith("/") };
    at = close + 1;
  }
}
/** Where the tag ends; a `>` inside a quoted attribute is part of the tag. */
function tagEnd(source: string, from: number): number {
  let quote = "";
  let before = "";
  for (let at = from; at < source.length; at++) {
    const sign = source.charAt(at);
    if (quote !== "") {
      if (sign === quote) quote = "";
    } else if (sign === ">") return at;
    else if ((sign === '"' || sign === "'") && before === "=") quote = sign;
    if (!SPACE.has(sign)) before = sign;
  }
  return source.length;
}
const SPACE = new Set([" ", "\t", "\n", "\r", "\f"]);
