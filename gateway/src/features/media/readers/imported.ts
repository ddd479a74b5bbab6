/** Readers as modules beside the gateway's own code, imported on first use. Cloudflare loads each of them with its first import. */
import type { Readers } from "../../../ports/readers.ts";

export const importedReaders: Readers = {
  async open(name) {
    switch (name) {
      case "pdf":
        return { read: (await import("./pdf.lazy.ts")).read };
      case "documents":
        return { read: (await import("./documents.lazy.ts")).read };
      case "images":
        return { read: (await import("./images.lazy.ts")).read };
    }
  },
};
