/** `POST /media`: stores a file for a message or a call. Checks the headers; the gateway has decided who may upload and where to. */
import type { UploadPermit } from "../../ports/http.ts";
import type { MediaOrigin } from "../../storage/media-names.ts";
import { upload } from "../../features/media/upload.ts";
import { failureResponse, problemResponse, SAFE_HEADERS } from "./problem.ts";

const NAME_CHARS = 256;

/** Undefined: the length is missing or not a number. */
function declaredBytes(header: string | null): number | undefined {
  return header !== null && /^\d{1,15}$/.test(header) ? Number(header) : undefined;
}
const originOf = (permit: UploadPermit): MediaOrigin =>
  permit.kind === "call"
    ? { kind: "call", callId: permit.callId, nodeId: permit.nodeId }
    : { kind: "upload", id: permit.id ?? crypto.randomUUID() };

export async function uploadResponse(bucket: R2Bucket, request: Request, permit: UploadPermit, now: number): Promise<Response> {
  const sizeBytes = declaredBytes(request.headers.get("Content-Length"));
  if (sizeBytes === undefined)
    return problemResponse("protocol.invalid_params", "The size of the upload is missing: send a Content-Length header.", { status: 411 });
  if (sizeBytes > permit.maxBytes)
    return problemResponse("file.too_large", `The file has ${sizeBytes} bytes; at most ${permit.maxBytes} are accepted.`);
  if (sizeBytes === 0 || request.body === null) return problemResponse("protocol.invalid_params", "The file is empty.");
  const filename = new URL(request.url).searchParams.get("filename")?.slice(0, NAME_CHARS);
  const stored = await upload(
    {
      sessionKey: permit.sessionKey,
      origin: originOf(permit),
      contentType: request.headers.get("Content-Type") ?? "",
      sizeBytes,
      body: request.body,
      ...(filename === undefined ? {} : { filename }),
      now,
      imagesOnly: permit.kind === "call",
    },
    bucket,
  );
  if (!stored.ok) return failureResponse(stored.error);
  return new Response(JSON.stringify(stored.value), { status: 200, headers: { ...SAFE_HEADERS, "Content-Type": "application/json" } });
}
