/** An e-mail file as text: its headers, its text, and the names of its attachments. */
import PostalMime, { type Address } from "postal-mime";
import { htmlText } from "./html.ts";
import { TextOut, Unreadable } from "./reading.ts";

const who = (addresses: readonly Address[] | undefined): string =>
  (addresses ?? [])
    .slice(0, 50)
    .map(({ name, address }) => (address === undefined || address === "" ? name : name === "" ? address : `${name} <${address}>`))
    .join(", ");

export async function mailText(bytes: Uint8Array): Promise<string> {
  const mail = await PostalMime.parse(bytes, { maxNestingDepth: 32, maxHeadersSize: 1_048_576 }).catch(() => {
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
  out.add(`\n${mail.text?.trim() ? mail.text.trim() : htmlText(mail.html ?? "")}`);
  return out.toString();
}
