import type { Refusal } from "../contract.ts";

/** "Troubleshooting guide" › Error codes: which `status` goes with which code. */
const statuses: Readonly<Record<number, string>> = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  409: "ABORTED",
  429: "RESOURCE_EXHAUSTED",
  500: "INTERNAL",
  503: "UNAVAILABLE",
  504: "DEADLINE_EXCEEDED",
};

export function errorBody(code: number, message: string): unknown {
  const status = statuses[code] ?? (code >= 500 ? "INTERNAL" : "INVALID_ARGUMENT");
  return { error: { code, message, status } };
}

export function refuse(rule: string, message: string, code = 400): Refusal {
  return { status: code, rule, body: errorBody(code, message) };
}

/** A refusal by the form of a field, which the real server names once more in its details. */
export function refuseField(rule: string, field: string, message: string): Refusal {
  const details = [
    {
      "@type": "type.googleapis.com/google.rpc.BadRequest",
      fieldViolations: [{ field, description: message }],
    },
  ];
  return { status: 400, rule, body: { error: { code: 400, message, status: "INVALID_ARGUMENT", details } } };
}
