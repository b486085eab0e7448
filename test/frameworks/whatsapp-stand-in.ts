import { createHmac } from "node:crypto";
import type { PlatformCall, PlatformRequest } from "./platform-stand-in.ts";
import { PlatformStandIn } from "./platform-stand-in.ts";

const accessToken = "whatsapp-stand-in-0123456789";
const appSecret = "0123456789abcdef0123456789abcdef";
const phoneNumberId = "100200300";

/** The messages of WhatsApp's Cloud API, and the requests that WhatsApp sends. */
export class WhatsAppStandIn extends PlatformStandIn {
  get settings() {
    return { accessToken, appSecret, phoneNumberId, verifyToken: "verify-0123456789", apiUrl: this.url };
  }

  protected answer({ path, headers, body }: PlatformRequest) {
    if (headers.authorization !== `Bearer ${accessToken}`) return { status: 401, body: {} };
    const params = JSON.parse(body.toString()) as PlatformCall["params"];
    const method = path.endsWith(`/${phoneNumberId}/messages`) ? "messages" : path;
    return this.record(method, params, () => ({
      body: { messages: [{ id: `wamid.${this.calls.length}` }] },
    }));
  }

  /** What WhatsApp sends for a message of Ann's. */
  event(text: string, id = "wamid.in1") {
    const from = "15550001";
    const value = {
      messaging_product: "whatsapp",
      metadata: { display_phone_number: "15559999", phone_number_id: phoneNumberId },
      contacts: [{ profile: { name: "Ann" }, wa_id: from }],
      messages: [{ from, id, timestamp: "1800000000", type: "text", text: { body: text } }],
    };
    const entry = [{ id: "1", changes: [{ field: "messages", value }] }];
    return { object: "whatsapp_business_account", entry };
  }

  /** Sends a request as WhatsApp does: signed with the app secret. */
  send(url: string, event: object, secret = appSecret): Promise<Response> {
    const body = JSON.stringify(event);
    const signature = createHmac("sha256", secret).update(body).digest("hex");
    const headers = { "content-type": "application/json", "x-hub-signature-256": `sha256=${signature}` };
    return fetch(url, { method: "POST", headers, body });
  }
}
