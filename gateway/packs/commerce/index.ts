/** The pack for web shops on Shopify: order triage with refunds, and a weekly report. Only what must be known before it is on. */
import { headerSecret, type PackDefinition } from "../../src/packs/pack.ts";

const SHOP = /^[a-z0-9][a-z0-9-]{0,62}\.myshopify\.com$/;
/** A test server on this machine. */
const LOCAL = /^http:\/\/(?:127\.0\.0\.1|localhost):\d{1,5}$/;

export const commerce: PackDefinition = {
  name: "commerce",
  doc: "Order triage, refunds and a weekly report for a shop on Shopify.",
  queue: "shopify-actions",
  settings: {
    shop: {
      doc: "The shop's domain, such as acme.myshopify.com.",
      problem: (value) =>
        SHOP.test(value) || (LOCAL.test(value) && URL.canParse(value))
          ? undefined
          : `${JSON.stringify(value)} is not a domain such as acme.myshopify.com.`,
    },
  },
  secrets: { token: headerSecret("The access token of an app of the shop, with read_orders, read_products and write_orders.") },
  load: async () => (await import("./commerce.lazy.ts")).content,
};
