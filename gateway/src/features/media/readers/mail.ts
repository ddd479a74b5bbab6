/** An e-mail file as text: its headers, its text, and the names of its attachments. */
import PostalMime, { type Address } from "postal-mime";
import { LIMITS } from "../../../../../protocol/gen/limits.ts";
import { htmlText } from "./html.ts";
import { TextOut, Unreadable } from "./reading.ts";

const who = (addresses: readonly Address[] | undefined): string =>
  (addresses ?? [])
    .slice(0, 50)
    .map(({ name, address }) => (address === undefined || address === "" ? name : name === "" ? address : `${name} <${address}>`))
    .join(", ");

const HEADER_BYTES = 262_144;
const DEPTH = 10;

/** The parser does work for every line and part, so they are counted before. Throws `Unreadable`. */
function checkSize(bytes: Uint8Array): void {
  let lines = 0;
  let dashes = 0;
  let textBytes = 0;
  for (let at = 0; at < bytes.length; ) {
    const found = bytes.indexOf(10, at);
    const next = found < 0 ? bytes.length : found + 1;
    lines += 1;
    if (bytes[at] === 45 && bytes[at + 1] === 45) dashes += 1;
    if (!isBase64(bytes, at, next)) textBytes += next - at;
    if (lines > LIMITS.mailLines) throw new Unreadable(`It has more than ${LIMITS.mailLines} lines.`);
    if (dashes > LIMITS.mailParts) throw new Unreadable(`It has too many parts: more than ${LIMITS.mailParts} lines begin with \`--\`.`);
    if (textBytes > LIMITS.mailTextBytes)
      throw new Unreadable(`Its text without attachments is larger than ${LIMITS.mailTextBytes / 1_048_576} MiB.`);
    at = next;
  }
}
/** By the first characters: a full line of base64 has no others, and no text has so long a word in each line. */
function isBase64(bytes: Uint8Array, from: number, end: number): boolean {
  if (end - from < 60 || end - from > 80) return false;
  for (let at = from; at < from + 60; at++) {
    const sign = bytes[at] ?? 0;
    const isLetter = (sign >= 65 && sign <= 90) || (sign >= 97 && sign <= 122);
    if (!isLetter && !(sign >= 48 && sign <= 57) && sign !== 43 && sign !== 47) return false;
  }
  return true;
}

export async function mailText(bytes: Uint8Array): Promise<string> {
  checkSize(bytes);
  const limits = { maxNestingDepth: DEPTH, maxRfc822NestingDepth: 3, maxHeadersSize: HEADER_BYTES };
  const mail = await PostalMime.parse(bytes, limits).catch(() => {
    throw new Unreadable("It is damaged, or it is not an e-mail.");
  });
  const out = new TextOut();
  const header = (name: string, value: string | undefined): void => {
    if (value !== undefined && value !== "") out.add(`${name}: ${value}\n`);
  };
  header("From", who(mail.from ? [mail.from] : undefined));
  header("To", who(mail.to));
  header("Cc", who(mail.cc));
  header("Date", mail.date);
  header("Subject", mail.subject);
  for (const { filename, mimeType, content } of mail.attachments.slice(0, 100)) {
    const size = typeof content === "string" ? content.length : content.byteLength;
    header("Attachment", `${JSON.stringify(filename ?? "")} (${mimeType}, ${size} bytes)`);
  }
  out.add(`\n${mail.text?.trim() ? mail.text.trim() : await htmlText(mail.html ?? "")}`);
  return out.toString();
}
