// What the widgets add to elements and to the page, and the parts of Jupyter's model that they use.

interface Element {
  setAttribute(name: string, value: number | boolean): void; // the page converts it to text
}

interface CSSStyleDeclaration {
  setProperty(name: string, value: string | number): void;
}

interface HTMLElement {
  flashText?: string; // the plain text of a sentence that is set with symbols
  flashWidget?: object; // for tests and for the curious
}

/** The model of a widget, as described by anywidget; Traits: what Python and the page share. */
interface Model<Traits> {
  get<Name extends keyof Traits>(name: Name): Traits[Name];
  set<Name extends keyof Traits>(name: Name, value: Traits[Name]): void;
  on(event: string, listener: (...sent: any[]) => void): void;
  off(event: string, listener: (...sent: any[]) => void): void;
  save_changes(): void;
  send(message: object): void;
  answers?: boolean; // on a page of the site: requests are answered from a record
  widget_manager?: { kernel?: { status: string } };
}

/** What anywidget passes to a widget's render. */
interface Context<Traits> {
  model: Model<Traits>;
  el: HTMLElement;
}

/** The traits of every widget. */
interface SharedTraits {
  problem: string;
  refused: string;
  asked: number;
  heard: number;
}
