/** HTML as plain text: paragraphs, list items, table cells and the addresses of links. Runs nothing and loads nothing. */
import { eachInTurns } from "./reading.ts";
import { attribute, unescaped, xmlParts } from "./xml.ts";

const LEFT_OUT = new Set(["script", "style", "noscript", "template", "svg", "head", "title"]);
/** Removes these elements before tags are read: to a browser their content is text, whatever it looks like. */
function withoutRaw(source: string): string {
  // Letters of ASCII only: others change their length, and with it every position.
  const lower = source.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
  const out: string[] = [];
  let from = 0;
  for (const { index, 1: name = "" } of lower.matchAll(/<(script|style|noscript|template)\b/g)) {
    if (index < from) continue;
    out.push(source.slice(from, index));
    const close = lower.indexOf(`</${name}`, index);
    const end = close < 0 ? -1 : lower.indexOf(">", close);
    from = end < 0 ? source.length : end + 1;
  }
  return [...out, source.slice(from)].join("");
}
const BLOCK = new Set([
  "p",
  "div",
  "section",
  "article",
  "header",
  "footer",
  "main",
  "aside",
  "ul",
  "ol",
  "table",
  "tr",
  "blockquote",
  "pre",
  "form",
  "h1",
  "h2",
  "h3",
  "h4",
  "h5",
  "h6",
  "hr",
  "dl",
  "dt",
  "dd",
  "figure",
]);

export async function htmlText(source: string): Promise<string> {
  const out: string[] = [];
  let hidden = "";
  let link: string | undefined;
  let isPre = false;
  const title = /<title[^>]*>([^<]{1,512})<\/title/i.exec(source.slice(0, 8_192))?.[1];
  await eachInTurns(xmlParts(withoutRaw(source)), (part) => {
    if (part.kind === "text") {
      if (hidden === "") out.push(isPre ? part.text : part.text.replace(/\s+/g, " "));
      return;
    }
    const name = part.name.toLowerCase();
    const isOpen = part.kind === "open";
    if (hidden !== "") {
      if (!isOpen && name === hidden) hidden = "";
      return;
    }
    if (isOpen && !part.isEmpty && LEFT_OUT.has(name)) hidden = name;
    else if (name === "br") out.push("\n");
    else if (name === "li" && isOpen) out.push("\n- ");
    else if ((name === "td" || name === "th") && !isOpen) out.push(" | ");
    else if (BLOCK.has(name)) out.push("\n");
    if (name === "pre") isPre = isOpen;
    if (name === "img" && isOpen) {
      const alt = attribute(part.attributes, "alt")?.trim();
      if (alt !== undefined && alt !== "") out.push(`[Image: ${alt}]`);
    }
    if (name !== "a") return;
    if (isOpen) link = attribute(part.attributes, "href");
    else if (link !== undefined) {
      if (/^(?:https?:|mailto:)/i.test(link)) out.push(` (${link})`);
      link = undefined;
    }
  });
  return tidy([title === undefined ? "" : `${unescaped(title).trim()}\n\n`, ...out].join(""));
}
/** No spaces around lines, at most one empty line. */
const tidy = (text: string): string =>
  text
    .split("\n")
    .map((line) => line.trim())
    .join("\n")
    .replace(/\n{3,}/g, "\n\n")
    .trim();
