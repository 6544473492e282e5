import { useQueryClient } from '@tanstack/react-query'
import { Timer } from 'lucide-react'
import { useState } from 'react'
import { useLocation } from 'wouter'
import { api } from '@/api/client'
import { conversations } from '@/api/conversations'
import type { Conversation } from '@/api/types'
import { text } from '@/text'
import { Button } from '@/ui/Button'
import { moment } from '@/ui/format'
import { notify, notifyError } from '@/ui/toasts'

/** The note below the header of a temporary conversation, with buttons to keep it, or to close and delete it. */
export default function Temporary({ conversation, onKept }: { conversation: Conversation; onKept: () => void }) {
  const { id, expires_at } = conversation
  const [, go] = useLocation()
  const client = useQueryClient()
  const [busy, setBusy] = useState(false)

  function act(request: Promise<unknown>, then: () => void) {
    setBusy(true)
    request
      .then(() => {
        then()
        return client.invalidateQueries({ queryKey: ['conversations'] })
      })
      .catch(notifyError)
      .finally(() => setBusy(false))
  }

  return (
    <div className="mx-3 mt-2 mb-1 flex flex-wrap items-center gap-x-3 gap-y-1 rounded-xl bg-accent-soft px-3 py-1.5 text-xs sm:mx-5">
      <Timer size={15} aria-hidden className="shrink-0 text-accent" />
      <p className="min-w-40 grow">{text.temporary.note(moment(expires_at ?? 0))}</p>
      <div className="flex gap-2">
        <Button
          disabled={busy}
          onClick={() =>
            act(conversations.change(id, { temporary: false }), () => {
              onKept()
              notify(text.temporary.kept)
            })
          }
        >
          {text.temporary.keep}
        </Button>
        <Button
          look="danger"
          disabled={busy}
          onClick={() => act(api.delete(`/conversations/${encodeURIComponent(id)}?purge=true`), () => go('/'))}
        >
          {text.temporary.close}
        </Button>
      </div>
    </div>
  )
}
