/** Reads documents as text: Word, Excel, PowerPoint, e-mail, HTML. Loaded on first use. */
import type { DocumentKind } from "../document-kinds.ts";
import { htmlText } from "./html.ts";
import { mailText } from "./mail.ts";
import type { Reader } from "../../../ports/readers.ts";
import { textOutcome, TextOut, Unreadable } from "./reading.ts";
import { sheetsText } from "./sheets.ts";
import { slidesText } from "./slides.ts";
import { wordText } from "./word.ts";

export const read: Reader["read"] = (bytes, { kind }) =>
  textOutcome(() => {
    if (kind === "pdf" || kind === "image") throw new Unreadable("It is not a document of a kind that is read here.");
    return documentText(kind, bytes);
  });

/** Throws `Unreadable`. */
export async function documentText(kind: Exclude<DocumentKind, "pdf">, bytes: Uint8Array): Promise<string> {
  switch (kind) {
    case "docx":
      return wordText(bytes);
    case "xlsx":
      return sheetsText(bytes);
    case "pptx":
      return slidesText(bytes);
    case "eml":
      return mailText(bytes);
    case "html": {
      const out = new TextOut();
      out.add(await htmlText(new TextDecoder().decode(bytes)));
      return out.toString();
    }
  }
}
