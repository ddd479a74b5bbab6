/** Reads documents as text: Word, Excel, PowerPoint, e-mail, HTML. Loaded on first use. Throws `Unreadable`. */
import type { DocumentKind } from "../document-kinds.ts";
import { htmlText } from "./html.ts";
import { mailText } from "./mail.ts";
import { sheetsText, slidesText, wordText } from "./office.ts";
import { TextOut } from "./reading.ts";

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
      out.add(htmlText(new TextDecoder().decode(bytes)));
      return out.toString();
    }
  }
}
