/**
 * Converts Markdown, as models write it, to the marks of a platform (product P7). PURE; takes any text and loses no word of it.
 *
 * WhatsApp has *bold*, _italic_, ~struck~, `code` and ``` blocks, lists of one level and quotes, and no escapes. Discord reads
 * Markdown without tables and images by URL, and with three levels of headings.
 */
import { Lexer, type Token, type Tokens } from "marked";

/** Deeper Markdown is sent unchanged. */
const MAX_DEPTH = 16;
const RULE = "———";

type Inline = Tokens.Generic | Token;
interface Style {
  readonly bold: string;
  readonly italic: string;
  readonly struck: string;
  readonly link: (text: string, href: string) => string;
}
const WHATSAPP: Style = {
  bold: "*",
  italic: "_",
  struck: "~",
  link: (text, href) => (sameAddress(text, href) ? href : `${text} (${href})`),
};
/** Words and URLs only. */
const PLAIN: Style = { bold: "", italic: "", struck: "", link: WHATSAPP.link };
const sameAddress = (text: string, href: string): boolean => text === "" || text === href || `mailto:${text}` === href;

export function toWhatsApp(markdown: string): string {
  return render(markdown, (tokens) => blocks(tokens, WHATSAPP));
}
export function toPlain(markdown: string): string {
  return render(markdown, (tokens) => blocks(tokens, PLAIN));
}
export function toDiscord(markdown: string): string {
  return render(markdown, (tokens) => tokens.map(discordBlock).join(""));
}

function render(markdown: string, write: (tokens: readonly Token[]) => string): string {
  const text = markdown.toWellFormed();
  if (nesting(text) > MAX_DEPTH) return text.trim();
  return write(new Lexer({ gfm: true }).lex(text)).replace(/^\n+|\s+$/g, "");
}
/** Depth of nested quotes and lists, measured before the recursive parser sees them. */
function nesting(text: string): number {
  let deepest = 0;
  for (const line of text.split("\n")) {
    const lead = /^(?:[ \t]*(?:>|[-*+]|\d{1,9}[.)])(?=[ \t>]|$))*/.exec(line)?.[0] ?? "";
    deepest = Math.max(deepest, (lead.match(/>|[-*+]|\d[.)]/g) ?? []).length);
  }
  return deepest;
}

// ---------------------------------------------------------------- blocks

function blocks(tokens: readonly Token[], style: Style): string {
  return tokens
    .map((token) => block(token, style))
    .filter((text) => text !== "")
    .join("\n\n");
}
function block(token: Token, style: Style): string {
  switch (token.type) {
    case "space":
    case "def":
      return "";
    case "heading":
      return mark(style.bold, inlines(token.tokens, { ...style, bold: "" }));
    case "paragraph":
    case "text":
      return token["tokens"] ? inlines(token["tokens"], style) : String(token["text"] ?? token.raw);
    case "code":
      return style.bold === "" ? String(token["text"]) : `\`\`\`\n${String(token["text"])}\n\`\`\``;
    case "blockquote":
      return blocks(token["tokens"] ?? [], style)
        .split("\n")
        .map((line) => `> ${line}`)
        .join("\n");
    case "list":
      return list(asList(token), style);
    case "table":
      return table(asTable(token), style);
    case "hr":
      return RULE;
    default:
      return token.raw.trim();
  }
}
const asList = (token: Token): Tokens.List => token as Tokens.List;
const asTable = (token: Token): Tokens.Table => token as Tokens.Table;

function list({ items, ordered, start }: Tokens.List, style: Style): string {
  const first = typeof start === "number" ? start : 1;
  return items
    .map((item, index) => {
      const bullet = item.task ? (item.checked ? "☑ " : "☐ ") : ordered ? `${first + index}. ` : "- ";
      const body = item.tokens
        .filter((token) => token.type !== "checkbox")
        .map((token) => block(token, style))
        .filter((text) => text !== "")
        .join("\n");
      const [head = "", ...rest] = body.split("\n");
      return [`${bullet}${head}`, ...rest.map((line) => (line === "" ? "" : `  ${line}`))].join("\n");
    })
    .join("\n");
}
/** Each row becomes a list item: its first cell, then the others with their headings. */
function table({ header, rows }: Tokens.Table, style: Style): string {
  const heads = header.map((cell) => inlines(cell.tokens, { ...style, bold: "" }));
  return rows
    .map((row) => {
      const [first = "", ...rest] = row.map((cell) => inlines(cell.tokens, style));
      const lines = rest.flatMap((text, index) => {
        const head = heads[index + 1] ?? "";
        return text === "" ? [] : [head === "" ? `  ${text}` : `  ${head}: ${text}`];
      });
      return [`- ${first.includes(style.bold) ? first : mark(style.bold, first)}`, ...lines].join("\n");
    })
    .join("\n");
}

// ---------------------------------------------------------------- inside a line

function inlines(tokens: readonly Inline[] | undefined, style: Style): string {
  return (tokens ?? [])
    .map((token, at, all) => (isInsideWord(token, all[at - 1], all[at + 1]) ? token.raw : inline(token, style)))
    .join("");
}
/** `2*3*4` is arithmetic, although Markdown reads it as emphasis. */
const isInsideWord = (token: Inline, before: Inline | undefined, after: Inline | undefined): boolean =>
  (token.type === "em" || token.type === "strong" || token.type === "del") &&
  /[\p{L}\p{N}]$/u.test(before?.raw ?? "") &&
  /^[\p{L}\p{N}]/u.test(after?.raw ?? "");
function inline(token: Inline, style: Style): string {
  switch (token.type) {
    case "strong":
      return mark(style.bold, inlines(token["tokens"], { ...style, bold: "" }));
    case "em":
      return mark(style.italic, inlines(token["tokens"], { ...style, italic: "" }));
    case "del":
      return mark(style.struck, inlines(token["tokens"], { ...style, struck: "" }));
    case "codespan":
      return style.bold === "" && style.italic === "" && style.struck === "" ? String(token["text"]) : `\`${String(token["text"])}\``;
    case "br":
      return "\n";
    case "link":
      return style.link(inlines(token["tokens"], style), String(token["href"]));
    case "image":
      return style.link(String(token["text"]), String(token["href"]));
    case "escape":
      return String(token["text"]);
    case "text":
      return token["tokens"] ? inlines(token["tokens"], style) : unescaped(String(token["text"]));
    default:
      return token.raw ?? "";
  }
}
/** A mark works only directly beside a word. */
function mark(sign: string, text: string): string {
  const inner = text.trim();
  const lead = text.slice(0, text.indexOf(inner));
  const tail = text.slice(lead.length + inner.length);
  // On platforms a mark ends with its line.
  return `${lead}${inner
    .split("\n")
    .map((line) => (line.trim() === "" ? line : `${sign}${line.trim()}${sign}`))
    .join("\n")}${tail}`;
}
const unescaped = (text: string): string =>
  text.replace(
    /&(?:amp|lt|gt|quot|#39);/g,
    (entity) => ({ "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'" })[entity] ?? entity,
  );

// ---------------------------------------------------------------- Discord

const MAX_TABLE_WIDTH = 60;
function discordBlock(token: Token): string {
  const end = /\n*$/.exec(token.raw)?.[0] ?? "";
  if (token.type === "table") return discordTable(asTable(token)) + end;
  if (token.type === "heading" && Number(token["depth"]) > 3) return mark("**", inlines(token.tokens, DISCORD_PLAIN)) + end;
  if (token.type === "hr") return RULE + end;
  if (token.type === "paragraph" && token.tokens?.some((inner) => inner.type === "image"))
    return token.tokens.map((inner) => (inner.type === "image" ? inline(inner, PLAIN) : inner.raw)).join("") + end;
  return token.raw;
}
const DISCORD_PLAIN: Style = { ...PLAIN, link: (text, href) => (sameAddress(text, href) ? href : `[${text}](${href})`) };
/** As columns when it is narrow enough for a phone, else as a list. */
function discordTable(token: Tokens.Table): string {
  const cells = [token.header, ...token.rows].map((row) => row.map((cell) => inlines(cell.tokens, PLAIN).replaceAll("\n", " ")));
  const widths = token.header.map((_, column) => Math.max(...cells.map((row) => (row[column] ?? "").length)));
  const total = widths.reduce((sum, width) => sum + width + 2, 0);
  if (total > MAX_TABLE_WIDTH || cells.some((row) => row.some((cell) => cell.includes("```"))))
    return table(token, { ...DISCORD_PLAIN, bold: "**" });
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join("  ")
      .trimEnd();
  const [head = [], ...rows] = cells;
  return ["```", line(head), widths.map((width) => "─".repeat(width)).join("  "), ...rows.map(line), "```"].join("\n");
}
