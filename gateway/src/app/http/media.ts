/**
 * Serves stored media over HTTP (X18, TH15): only to tokens that may read, and never as a type that a browser would run, whatever type
 * the sender declared.
 */
import { problemResponse, SAFE_HEADERS } from "./problem.ts";

/** `{sessionKey}/{uuid}.{ext}`, as in the storage layout. */
const MEDIA_KEY = /^[^/\u0000-\u001f\u007f]{1,512}\/[A-Za-z0-9-]{1,64}\.[a-z0-9]{1,8}$/;
/** Types that are served as they are; every other file is served as plain bytes. */
const KNOWN_TYPES = /^(?:image\/(?:jpeg|png|gif|webp)|audio\/[a-z0-9.+-]{1,32}|video\/(?:mp4|webm|quicktime)|application\/pdf)$/;

export const isMediaKey = (key: string): boolean => MEDIA_KEY.test(key) && !key.split("/").some((part) => part === "." || part === "..");

export async function mediaResponse(bucket: R2Bucket, key: string): Promise<Response> {
  const object = isMediaKey(key) ? await bucket.get(`media/${key}`) : null;
  if (object === null) return problemResponse("path.not_found", "There is no such media file.");
  const type = object.httpMetadata?.contentType?.split(";")[0]?.trim().toLowerCase() ?? "";
  return new Response(object.body, {
    headers: {
      ...SAFE_HEADERS,
      "Content-Type": KNOWN_TYPES.test(type) ? type : "application/octet-stream",
      "Content-Length": String(object.size),
      "Content-Disposition": attachment(object.customMetadata?.["originalFilename"] ?? key.slice(key.lastIndexOf("/") + 1)),
      "Cross-Origin-Resource-Policy": "same-origin",
      ETag: object.httpEtag,
    },
  });
}

/** RFC 6266: a plain name for old readers, the real one percent-encoded. Folders and control characters are removed. */
export function attachment(filename: string): string {
  const base = filename.slice(Math.max(filename.lastIndexOf("/"), filename.lastIndexOf("\\")) + 1, 1024).toWellFormed();
  const name =
    Array.from(base.replace(/[\u0000-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, ""))
      .slice(0, 128)
      .join("") || "file";
  const plain = name.replace(/[^A-Za-z0-9._ -]/g, "_");
  return `attachment; filename="${plain}"; filename*=UTF-8''${encodeURIComponent(name).replace(/['()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`)}`;
}
