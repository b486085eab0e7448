import type { Clock } from "../../core/clock.ts";
import { systemClock } from "../../core/clock.ts";
import { SkeinError } from "../../core/errors.ts";
import type { Channel } from "../contract.ts";
import { deliveryError } from "../delivery-error.ts";
import type { AcceptInbound } from "./inbound.ts";
import { handleInbound } from "./inbound.ts";
import { deliverByPost } from "./outbound.ts";

export interface WebhookOptions {
  /** The channel's name in keys, and in the path of its inbound messages. */
  readonly id: string;
  readonly secret: string;
  /** Where messages go; `null`: this channel only brings them in. */
  readonly url: string | null;
  readonly accept: AcceptInbound;
  readonly clock?: Clock;
  readonly fetch?: typeof globalThis.fetch;
  /** What went wrong inside and was not told to the sender. */
  readonly report?: (error: unknown) => void;
}

export interface Webhook extends Channel {
  /** Takes a signed message in; mounted at `inboundPath(id)`. */
  handler(request: Request): Promise<Response>;
  /** It has no address: nothing goes to it. */
  readonly isInboundOnly: boolean;
}

/** A channel to a program that speaks HTTP: signed messages in and out. */
export function createWebhook(given: WebhookOptions): Webhook {
  const options = { clock: systemClock, fetch: globalThis.fetch, report: () => undefined, ...given };
  const { id, secret } = options;
  if (secret === "") {
    throw wrong(id, "has an empty secret", `Set channels.${id}.secret`);
  }
  const url = options.url === null ? null : checkedUrl(id, options.url);
  return {
    id,
    handler: (request) => handleInbound(request, options),
    isInboundOnly: url === null,
    deliver: async (message, target) => {
      if (url !== null) return deliverByPost(message, target, { ...options, url });
      throw deliveryError(id, `it has no address (channels.${id}.url)`, { permanent: true });
    },
  };
}

/** Of an address that is refused nothing is shown: it may hold a secret. */
function checkedUrl(id: string, text: string): string {
  const url = URL.parse(text);
  if (url === null || !["http:", "https:"].includes(url.protocol)) {
    throw wrong(id, "has a url that is not one of http or https", `Correct channels.${id}.url`);
  }
  if (url.username !== "" || url.password !== "") {
    throw wrong(id, "has a url with a user or password", "Leave them out; messages are signed");
  }
  return url.href;
}

function wrong(id: string, problem: string, advice: string): SkeinError {
  return new SkeinError("invalid_arguments", { problem: `Channel "${id}" ${problem}`, advice });
}
