import { thrownText } from "../../core/text.ts";
import type { DeliveryError } from "../contract.ts";
import { deliveryError } from "../contract.ts";

interface PlatformError {
  readonly code?: unknown;
  readonly status?: unknown;
  readonly retryAfter?: unknown;
  readonly retryAfterMs?: unknown;
  readonly data?: { readonly error?: unknown };
}

interface ErrorAdvice {
  /** `true` if the same call would fail again. */
  readonly isPermanent: boolean;
  /** `true` if the message to be edited might no longer exist. */
  readonly isMessageGone: boolean;
  readonly retryAfterMs: number | null;
}

/** The codes of the adapters' errors, in `@chat-adapter/shared`. */
const permanentCodes = new Set(["AUTH_FAILED", "PERMISSION_DENIED", "NOT_FOUND", "VALIDATION_ERROR"]);
/** The errors of Slack's Web API that a retry cannot fix. */
const permanentSlackErrors =
  /^(?:channel_not_found|not_in_channel|is_archived|invalid_auth|not_authed|account_inactive|token_revoked|token_expired|missing_scope|no_permission|restricted_action|msg_too_long|invalid_blocks|user_not_found|cannot_dm_bot)$/;
const gone =
  /message_not_found|cant_update_message|edit_window_closed|message to edit not found|message can't be edited|unknown message/i;

/** Interprets a platform's error. Adapters throw their own errors and errors from the platforms' libraries. */
export function errorAdvice(error: unknown): ErrorAdvice {
  const { code, status, retryAfter, retryAfterMs, data } = (
    typeof error === "object" ? (error ?? {}) : {}
  ) as PlatformError;
  const text = thrownText(error);
  const slackError = typeof data?.error === "string" ? data.error : "";
  const isMessageGone = code === "NOT_FOUND" || status === 404 || gone.test(slackError) || gone.test(text);
  const seconds = typeof retryAfter === "number" ? retryAfter * 1000 : null;
  return {
    isMessageGone,
    isPermanent: permanentCodes.has(String(code)) || permanentSlackErrors.test(slackError),
    retryAfterMs: typeof retryAfterMs === "number" ? retryAfterMs : seconds,
  };
}

/** Converts a platform's error to the error of a failed delivery. */
export function toDeliveryError(channel: string, error: unknown): DeliveryError {
  if (error instanceof Error && "permanent" in error && "retryAfterMs" in error)
    return error as DeliveryError;
  const { isPermanent, retryAfterMs } = errorAdvice(error);
  return deliveryError(channel, thrownText(error).replace(/\.$/, ""), {
    permanent: isPermanent,
    retryAfterMs,
  });
}
