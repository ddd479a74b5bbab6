/** Which documents are read as text, by type and name. PURE. */
import type { MediaBlock } from "../../ports/messages.ts";

export type DocumentKind = "pdf" | "docx" | "xlsx" | "pptx" | "eml" | "html";

const OFFICE = "application/vnd.openxmlformats-officedocument";
const BY_TYPE: Readonly<Record<string, DocumentKind>> = {
  "application/pdf": "pdf",
  [`${OFFICE}.wordprocessingml.document`]: "docx",
  [`${OFFICE}.spreadsheetml.sheet`]: "xlsx",
  [`${OFFICE}.presentationml.presentation`]: "pptx",
  "message/rfc822": "eml",
  "text/html": "html",
  "application/xhtml+xml": "html",
};
const BY_NAME: Readonly<Record<string, DocumentKind>> = {
  pdf: "pdf",
  docx: "docx",
  docm: "docx",
  xlsx: "xlsx",
  xlsm: "xlsx",
  pptx: "pptx",
  pptm: "pptx",
  eml: "eml",
  html: "html",
  htm: "html",
};
/** Types that say nothing: senders use them for any file. */
const VAGUE = new Set(["application/octet-stream", "application/zip", "application/x-zip-compressed", "text/plain"]);

/** Undefined: it is plain text, or nothing here can read it. */
export function documentKind({ type, mimeType, filename }: Pick<MediaBlock, "type" | "mimeType" | "filename">): DocumentKind | undefined {
  if (type !== "document") return undefined;
  if (Object.hasOwn(BY_TYPE, mimeType)) return BY_TYPE[mimeType];
  const extension = /\.([A-Za-z0-9]{1,8})$/.exec(filename ?? "")?.[1]?.toLowerCase() ?? "";
  return VAGUE.has(mimeType) && Object.hasOwn(BY_NAME, extension) ? BY_NAME[extension] : undefined;
}
