import { useAui } from '@assistant-ui/react'
import { useState } from 'react'
import { useLocation } from 'wouter'
import { address } from '@/api/client'
import { commandIn, commands, type Place, type Reply, type Wishes } from '@/api/commands'
import { runs } from '@/api/conversations'
import type { Choice } from '@/conversation/composer/Pickers'
import type { Session } from '@/conversation/session'
import { lastFile } from '@/projects/places'
import { text } from '@/text'
import { notify, notifyError } from '@/ui/toasts'

/** The output or choices of a command, shown until the next command or prompt. */
export interface CommandOutput {
  command: string
  replies: readonly Reply[]
}

interface Commands {
  output: CommandOutput | null
  clear: () => void
  /** Run the text if it is a slash command. Return false if it should be sent as a prompt. */
  take: (text: string) => Promise<boolean>
  run: (name: string, argument: string) => Promise<void>
  wishes: Wishes
  /** The message that the current draft replaces. */
  edits: string | null
}

/** Slash commands, shared with the terminal. The server runs them and returns the actions to perform. */
export function useCommands(session: Session, place: Place, choose: (change: Partial<Choice>) => void): Commands {
  const aui = useAui()
  const [, go] = useLocation()
  const [output, setOutput] = useState<CommandOutput | null>(null)
  const [wishes, setWishes] = useState<Wishes>({})
  const [edits, setEdits] = useState<string | null>(null)

  /** Return where a command runs. That is known only after the conversation is loaded. */
  async function here(): Promise<Place> {
    await session.loaded()
    return { ...place, conversation: session.get().conversation ? session.id : null }
  }

  async function act(reply: Reply, conversation: string | null): Promise<void> {
    if (reply.kind === 'go') go(reply.conversation ? `/c/${reply.conversation}` : '/')
    if (reply.kind === 'leave') go('/')
    if (reply.kind === 'compose') {
      setEdits(reply.edits)
      aui.composer.setText(reply.text)
    }
    if (reply.kind === 'copy') {
      await navigator.clipboard.writeText(reply.text)
      notify(text.common.copied)
    }
    if (reply.kind === 'save') {
      const link = document.createElement('a')
      link.href = address(`/conversations/${reply.conversation}/export`, { format: reply.format })
      link.download = ''
      link.click()
    }
    if (reply.kind === 'run') {
      if (reply.conversation === conversation) await session.sync(true)
      else go(`/c/${reply.conversation}`)
    }
    if (reply.kind === 'answer') {
      if (reply.resume) await runs.resume(reply.resume)
      else void session.regenerate().catch(notifyError)
      if (reply.resume) await session.sync(true)
    }
  }

  async function run(name: string, argument: string): Promise<void> {
    const at = await here()
    const file = lastFile(session.get().conversation?.project ?? at.project)
    const done = await commands.run(name, { ...at, argument, file, wishes })
    setWishes(done.wishes)
    const { agent, model, mode } = done.wishes
    if (agent || model || mode) choose({ ...(agent && { agent }), ...(model && { model }), ...(mode && { mode }) })
    if (name === 'web' && !at.conversation) choose({ web: done.wishes.web_search ?? null })
    const shown = done.replies.filter((reply) => reply.kind === 'say' || reply.kind === 'choose')
    setOutput(shown.length ? { command: name, replies: shown } : null)
    for (const reply of done.replies) await act(reply, at.conversation)
    if (at.conversation) void session.sync()
  }

  async function take(text: string): Promise<boolean> {
    const command = commandIn(text)
    if (!command || !(await commands.knows(await here(), command.name))) return false
    await run(command.name, command.argument)
    return true
  }

  return {
    output,
    clear: () => {
      setOutput(null)
      setEdits(null)
    },
    take,
    run,
    wishes,
    edits,
  }
}
