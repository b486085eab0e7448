import { useState } from "react";
import { accessStore } from "../connect/access.ts";
import { errorText, useGateway, useMay, useOffline } from "../connect/gateway.tsx";
import buttons from "../ui/button.module.css";

interface RevokeButtonProps {
  readonly name: string;
  /** The label of the button that confirms. */
  readonly confirmName?: string;
  /** Whether the user has already made the first click elsewhere. */
  readonly isAsking?: boolean;
  readonly revoke: () => Promise<unknown>;
  readonly onRevoked: () => void;
}

/** Asks for confirmation in place, because a revoked token cannot be restored. */
export function RevokeButton({
  name,
  confirmName = "Revoke permanently",
  isAsking = false,
  revoke,
  onRevoked,
}: RevokeButtonProps) {
  const [phase, setPhase] = useState<"idle" | "asking" | "busy">(isAsking ? "asking" : "idle");
  const [error, setError] = useState<string | null>(null);
  const offline = useOffline();
  const confirm = async () => {
    setPhase("busy");
    try {
      await revoke();
      onRevoked();
    } catch (failure) {
      setError(errorText(failure));
    }
    setPhase("idle");
  };
  if (phase === "idle") {
    return (
      <>
        {error !== null && <span role="alert">{error} </span>}
        <button type="button" className={buttons.button} data-takes-focus onClick={() => setPhase("asking")}>
          {name}
        </button>
      </>
    );
  }
  return (
    <span
      onKeyDown={({ key }) => {
        if (key === "Escape") setPhase("idle");
      }}
    >
      <button
        type="button"
        autoFocus
        className={buttons.button}
        data-look="danger"
        disabled={phase === "busy"}
        onClick={() => void confirm()}
        {...offline}
      >
        {confirmName}
      </button>{" "}
      <button
        type="button"
        className={buttons.button}
        data-look="quiet"
        disabled={phase === "busy"}
        onClick={() => setPhase("idle")}
      >
        Cancel
      </button>
    </span>
  );
}

/** Signs this browser out. Its token cannot be used afterward, not even by a copy. */
export function SignOutButton({ isAsking = false }: { readonly isAsking?: boolean }) {
  const { client } = useGateway();
  if (!useMay("tokens.revokeOwn")) return null;
  return (
    <RevokeButton
      name="Sign out"
      confirmName="Sign out and revoke"
      isAsking={isAsking}
      revoke={() => accessStore.leave({ client })}
      onRevoked={() => undefined}
    />
  );
}
