import {
  type AppendMessage,
  AssistantRuntimeProvider,
  type ThreadMessageLike,
  useExternalStoreRuntime,
} from '@assistant-ui/react'
import { type ReactNode, useMemo } from 'react'
import type { Message, Part } from '@/api/types'
import { attachments, detailOf } from '@/conversation/composer/attachments'
import { ownFiles, typedText } from '@/conversation/messages/parts'
import type { Session } from '@/conversation/session'
import { notifyError } from '@/ui/toasts'

interface Props {
  session: Session
  messages: Message[]
  busy: boolean
  send: (parts: Part[]) => void
  children: ReactNode
}

/** Connect a session to assistant-ui: composer, editing, copying and message context. */
export function Runtime({ session, messages, busy, send, children }: Props) {
  const runtime = useExternalStoreRuntime<Message>({
    messages,
    isRunning: busy,
    convertMessage,
    adapters: useMemo(() => ({ attachments }), []),
    onNew: async (message) => send(partsOf(message)),
    onEdit: async (message) => {
      if (message.sourceId)
        await session
          .edit(message.sourceId, [...filesOf(messages, message.sourceId), ...partsOf(message)])
          .catch(notifyError)
    },
    onReload: async (_, { sourceId }) => {
      await session.regenerate(sourceId ?? undefined).catch(notifyError)
    },
    onCancel: async () => {
      await session.stop().catch(notifyError)
    },
  })
  return <AssistantRuntimeProvider runtime={runtime}>{children}</AssistantRuntimeProvider>
}

/** Messages are rendered from their own parts. assistant-ui only needs role and text, for copying and editing. */
function convertMessage(message: Message): ThreadMessageLike {
  return { id: message.id, role: message.role, content: [{ type: 'text', text: typedText(message.parts) }] }
}

/** Convert the composer's content to message parts. */
export function partsOf(message: Pick<AppendMessage, 'content' | 'attachments'>): Part[] {
  const parts: Part[] = (message.attachments ?? []).flatMap(({ id, content }) => {
    const detail = detailOf(id)
    return content.flatMap((file) =>
      file.type === 'file'
        ? [
            {
              type: 'file' as const,
              url: file.data,
              mediaType: file.mimeType,
              filename: file.filename,
              ...(detail && { detail }),
            },
          ]
        : [],
    )
  })
  const text = message.content.map((part) => (part.type === 'text' ? part.text : '')).join('')
  return text.trim() ? [...parts, { type: 'text', text }] : parts
}

function filesOf(messages: readonly Message[], id: string): Part[] {
  return ownFiles(messages.find((one) => one.id === id)?.parts ?? [])
}
