/** Runs bucket contract cases, and single operations, inside a Worker on the embedded bucket. Only for tests. */
import { bucketCases } from "../test/support/bucket-contract.ts";
import { layoutCases } from "../test/support/layout-contract.ts";

interface Env {
  readonly STORAGE: R2Bucket;
}
const shown = (object: R2Object | null): unknown =>
  object && {
    key: object.key,
    size: object.size,
    etag: object.etag,
    version: object.version,
    uploaded: object.uploaded.getTime(),
    custom: object.customMetadata,
    type: object.httpMetadata?.contentType,
  };

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const { pathname, searchParams } = new URL(request.url);
    const key = searchParams.get("key") ?? "";
    try {
      switch (pathname) {
        case "/case": {
          const index = Number(searchParams.get("index"));
          await bucketCases[index]?.run(env.STORAGE, `case-${index}/`);
          return new Response("ok");
        }
        case "/layout": {
          const index = Number(searchParams.get("index"));
          await layoutCases[index]?.run(env.STORAGE, `layout-${index}`);
          return new Response("ok");
        }
        case "/put":
          return Response.json(
            shown(await env.STORAGE.put(key, await request.arrayBuffer(), { customMetadata: { by: searchParams.get("by") ?? "test" } })),
          );
        case "/get": {
          const object = await env.STORAGE.get(key);
          return Response.json(object && { ...(shown(object) as object), text: await object.text() });
        }
        case "/list":
          return Response.json((await env.STORAGE.list({ prefix: key })).objects.map(shown));
        case "/delete":
          await env.STORAGE.delete(key);
          return new Response("ok");
        case "/multipart":
          await env.STORAGE.createMultipartUpload(key);
          return new Response("ok");
        default:
          return new Response("unknown", { status: 404 });
      }
    } catch (error) {
      return new Response(String(error), { status: 500 });
    }
  },
};
