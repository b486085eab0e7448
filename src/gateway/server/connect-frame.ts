import { checkParams } from "../../protocol/check-params.ts";
import type { WireError } from "../../protocol/errors.ts";
import { invalidRequest } from "../../protocol/errors.ts";
import { eventNames } from "../../protocol/events.ts";
import type { CloseReason, ConnectParams, HelloPayload, RequestFrame } from "../../protocol/frames.ts";
import { ConnectSchema, commonProtocol, protocolVersion, wireLimits } from "../../protocol/frames.ts";
import { methodsFor } from "../../protocol/method-table.ts";
import type { Principal } from "../auth/principal.ts";
import { everyUser } from "../auth/principal.ts";
import { malformed } from "./refusals.ts";

/** The first frame on a socket and its response. */

export type ReadConnect =
  | { readonly params: ConnectParams; readonly protocol: number }
  | { readonly refusal: WireError; readonly close: CloseReason };

export function readConnect({ method, params }: RequestFrame): ReadConnect {
  if (method !== "connect") {
    return { refusal: malformed("The first frame must be a connect request"), close: "badFrame" };
  }
  const checked = checkParams(ConnectSchema, params);
  if ("problems" in checked) return { refusal: invalidRequest(checked.problems), close: "badFrame" };
  const protocol = commonProtocol(checked.params.protocol);
  if (protocol !== null) return { params: checked.params, protocol };
  const refusal = malformed(`This gateway supports only protocol version ${protocolVersion}`);
  return { refusal, close: "noCommonProtocol" };
}

export function helloPayload(principal: Principal, protocol: number, version: string): HelloPayload {
  const { tokenId, scopes, user } = principal;
  const allUsers = user === everyUser;
  return {
    protocol,
    server: { name: "skein", version },
    methods: methodsFor({ scopes, allUsers }),
    events: [...eventNames, "gap"],
    limits: wireLimits,
    scopes: [...scopes],
    tokenId,
    ...(allUsers || user === null ? {} : { userId: user }),
    allUsers,
  };
}
