import {
  ArrowDownUp,
  Bot,
  Brain,
  CalendarClock,
  ChartNoAxesColumn,
  ChevronDown,
  Contrast,
  FolderCog,
  FolderInput,
  FolderTree,
  Inbox,
  Info,
  Keyboard,
  KeyRound,
  Languages,
  Lightbulb,
  Link2,
  ListTodo,
  type LucideIcon,
  MessageSquare,
  Monitor,
  Moon,
  Palette,
  Plug,
  ShieldCheck,
  SquarePen,
  Sun,
  TextSearch,
  Wrench,
} from 'lucide-react'
import type { ReactNode } from 'react'
import { useLocation } from 'wouter'
import type { Conversation } from '@/api/types'
import { open } from '@/app/panels'
import { requestScroll } from '@/conversation/target'
import { useConversations } from '@/data/conversations'
import type { Hit, Order } from '@/data/search'
import { written } from '@/keys/shortcuts'
import { chooseLanguage, LANGUAGES, type LanguageChoice } from '@/language'
import { EVERYTHING } from '@/lists/filter'
import { originOf, titleOf } from '@/lists/rows'
import { fitness, isNamed, pieces } from '@/search/query'
import { text } from '@/text'
import { choose } from '@/theme/choice'
import { age } from '@/ui/format'
import { notify } from '@/ui/toasts'

export interface Choice {
  key: string
  icon: ReactNode
  label: ReactNode
  keys?: string
  act: () => void
}

interface Group {
  name: string
  choices: Choice[]
}

interface Command {
  label: string
  icon: LucideIcon
  keys?: string
  to?: string
  act?: () => void
}

const COMMANDS: readonly Command[] = [
  { label: text.sidebar.newConversation, icon: SquarePen, keys: 'N', to: '/' },
  { label: text.sidebar.inbox, icon: Inbox, keys: 'I', to: '/inbox' },
  { label: text.commands.configuration, icon: FolderCog, to: '/settings' },
  { label: text.commands.models, icon: Plug, to: '/settings/models' },
  { label: text.commands.agents, icon: Bot, to: '/settings/agents' },
  { label: text.commands.projects, icon: FolderTree, to: '/settings/projects' },
  { label: text.commands.tasks, icon: ListTodo, to: '/settings/tasks' },
  { label: text.commands.tools, icon: Wrench, to: '/settings/tools' },
  { label: text.commands.permissions, icon: ShieldCheck, to: '/settings/permissions' },
  { label: text.commands.memory, icon: Brain, to: '/settings/memory' },
  { label: text.commands.tokens, icon: KeyRound, to: '/settings/tokens' },
  { label: text.commands.cron, icon: CalendarClock, to: '/settings/cron' },
  { label: text.commands.shares, icon: Link2, to: '/settings/shares' },
  { label: text.commands.import, icon: FolderInput, to: '/settings/import' },
  { label: text.commands.usage, icon: ChartNoAxesColumn, keys: 'U', to: '/usage' },
  { label: text.commands.appearance, icon: Palette, to: '/settings/appearance' },
  { label: text.commands.about, icon: Info, to: '/settings/about' },
  { label: text.commands.system, icon: Monitor, act: () => choose('system') },
  { label: text.commands.light, icon: Sun, act: () => choose('light') },
  { label: text.commands.dark, icon: Moon, act: () => choose('dark') },
  { label: text.commands.contrast, icon: Contrast, act: () => choose('contrast') },
  ...(['auto', ...LANGUAGES] as const).map(changeLanguage),
  { label: text.keys.title, icon: Keyboard, keys: '?', act: () => open('help') },
]

/** Return the command that changes the language. */
function changeLanguage(choice: LanguageChoice): Command {
  return {
    label: text.commands.language(text.language.names[choice]),
    icon: Languages,
    act: () => chooseLanguage(choice) || notify(text.language.notStored),
  }
}

/** Search results and the actions on them. */
export interface Messages {
  hits: readonly Hit[]
  order: Order
  /** True if the results match only some of the words. They are then sorted by relevance. */
  loose: boolean
  /** Change the sort order. */
  turn: (order: Order) => void
  /** Load more results. Null if there are none. */
  more: (() => void) | null
}

/** The group of commands that the query names. It comes first, and Enter runs its first command without waiting for search results. */
export const NAMED = text.search.namedCommands

/** Return the choices for a query in groups. Without a query: recent conversations and all commands. */
export function useChoices(query: string, found: Messages, onClose: () => void): Group[] {
  const [, go] = useLocation()
  const recent = useConversations(EVERYTHING)
  const conversations = recent.data?.pages.flatMap((page) => page.data) ?? []

  const visit = (address: string) => {
    onClose()
    go(address)
  }
  const commands = ranked(COMMANDS, query, (command) => command.label)
  const titles = ranked(conversations, query, titleOf).slice(0, query ? 8 : 6)
  const commandGroup = (name: string, own: readonly Command[]): Group => ({
    name,
    choices: own.map((command) => ({
      key: `command ${command.label}`,
      icon: <ChoiceIcon icon={command.icon} />,
      label: <Line label={command.label} />,
      keys: command.keys && written(command.keys),
      act: () => {
        onClose()
        command.act?.()
        if (command.to) go(command.to)
      },
    })),
  })
  const named = commands.filter(({ label }) => isNamed(label, query))
  const groups: Group[] = [
    commandGroup(NAMED, named),
    {
      name: text.search.conversations,
      choices: titles.map((conversation) => ({
        key: `conversation ${conversation.id}`,
        icon: <ChoiceIcon icon={MessageSquare} />,
        label: <Line label={titleOf(conversation)} note={noteOf(conversation)} />,
        act: () => visit(`/c/${conversation.id}`),
      })),
    },
    {
      name: found.loose ? text.search.partialMatches : text.search.messages[found.order],
      choices: query ? messages(found, visit) : [],
    },
    { name: text.search.semantic, choices: query && found.order !== 'meaning' ? [byMeaning(found.turn)] : [] },
    commandGroup(
      text.search.commands,
      commands.filter((command) => !named.includes(command)),
    ),
  ]
  return groups.filter((group) => group.choices.length > 0)
}

function messages({ hits, order, loose, turn, more }: Messages, visit: (address: string) => void): Choice[] {
  const choices: Choice[] = hits.map((hit) => ({
    key: `message ${hit.id}`,
    icon: <ChoiceIcon icon={TextSearch} />,
    label: <Found hit={hit} />,
    act: () => {
      requestScroll(hit.conversation, hit.id)
      visit(`/c/${hit.conversation}#${hit.id}`)
    },
  }))
  if (more)
    choices.push({
      key: 'more',
      icon: <ChoiceIcon icon={ChevronDown} />,
      label: <Line label={text.search.more} />,
      act: more,
    })
  const other = order === 'newest' ? 'best' : 'newest'
  if ((hits.length > 1 && !loose) || order === 'meaning') {
    choices.push({
      key: 'order',
      icon: <ChoiceIcon icon={ArrowDownUp} />,
      label: <Line label={text.search.sort[order]} />,
      act: () => turn(other),
    })
  }
  return choices
}

function byMeaning(turn: Messages['turn']): Choice {
  return {
    key: 'meaning',
    icon: <ChoiceIcon icon={Lightbulb} />,
    label: <Line label={text.search.byMeaning} />,
    act: () => turn('meaning'),
  }
}

function noteOf(conversation: Conversation): string {
  return [originOf(conversation), age(conversation.updated_at)].filter(Boolean).join(' · ')
}

function ranked<T>(all: readonly T[], query: string, textOf: (one: T) => string): T[] {
  if (!query) return [...all]
  return all
    .map((one) => ({ one, fits: fitness(textOf(one), query) }))
    .filter(({ fits }) => fits > 0)
    .sort((a, b) => b.fits - a.fits)
    .map(({ one }) => one)
}

function ChoiceIcon({ icon: Icon }: { icon: LucideIcon }) {
  return <Icon size={17} aria-hidden className="shrink-0 text-muted" />
}

function Line({ label, note }: { label: string; note?: string }) {
  return (
    <div className="flex items-baseline gap-x-3 text-sm max-sm:flex-col">
      <span className="max-w-full min-w-0 truncate">{label}</span>
      {note && <span className="shrink-0 text-xs text-faint sm:ml-auto">{note}</span>}
    </div>
  )
}

function Found({ hit }: { hit: Hit }) {
  return (
    <>
      <div className="line-clamp-2 text-sm break-words">
        {pieces(hit.snippet).map((piece) =>
          piece.hit ? <mark key={piece.key}>{piece.text}</mark> : <span key={piece.key}>{piece.text}</span>,
        )}
      </div>
      <div className="truncate text-xs text-faint">
        {[
          titleOf(hit),
          `${hit.role === 'user' ? text.search.you : text.search.agent}${text.search.column[hit.column]}`,
          age(hit.at),
        ].join(' · ')}
      </div>
    </>
  )
}
