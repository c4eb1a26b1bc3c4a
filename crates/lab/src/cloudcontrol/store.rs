//! What the service holds: resources, requests, client tokens, and the faults of a test.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, SystemTime};

use serde_json::Value;

use super::model;
use super::refusal::Refusal;
use super::request::{Failure, Operation, Request, Status};
use super::types::Type;

/// How long a client token is kept.
const TOKEN_LIFETIME: Duration = Duration::from_secs(36 * 3600);

#[derive(Default)]
pub(super) struct Store {
    /// By type and identifier.
    resources: BTreeMap<(String, String), Value>,
    requests: Vec<Request>,
    /// The request that a client token began, with its parameters and its time.
    tokens: HashMap<String, (Value, String, SystemTime)>,
    polls: HashMap<Operation, usize>,
    failures: HashMap<Operation, VecDeque<Failure>>,
    serial: u64,
    passed: Duration,
}

impl Store {
    pub fn slow(&mut self, operation: Operation, polls: usize) {
        self.polls.insert(operation, polls);
    }

    pub fn fail_next(&mut self, operation: Operation, failure: Failure) {
        self.failures.entry(operation).or_default().push_back(failure);
    }

    pub fn forget(&mut self) {
        self.requests.clear();
        self.tokens.clear();
    }

    pub fn pass(&mut self, time: Duration) {
        self.passed += time;
    }

    pub fn resources(&self, type_name: &str) -> Vec<(String, Value)> {
        let of_type = self.resources.iter().filter(|((of, _), _)| of == type_name);
        of_type.map(|((_, id), properties)| (id.clone(), properties.clone())).collect()
    }

    pub fn requests(&self) -> &[Request] {
        &self.requests
    }

    fn now(&self) -> SystemTime {
        SystemTime::now() + self.passed
    }

    pub fn resource(&mut self, type_name: &str, identifier: &str) -> Result<&Value, Refusal> {
        self.look_at(type_name, identifier);
        let key = (type_name.to_owned(), identifier.to_owned());
        let missing = || {
            let message =
                format!("Resource of type '{type_name}' with identifier '{identifier}' was not found.");
            Refusal::new("ResourceNotFoundException", message)
        };
        self.resources.get(&key).ok_or_else(missing)
    }

    /// The request that a client token began: the same call again is answered by it.
    pub fn replay(&mut self, token: &str, parameters: &Value) -> Result<Option<Request>, Refusal> {
        let now = self.now();
        self.tokens
            .retain(|_, (_, _, begun)| now.duration_since(*begun).is_ok_and(|age| age < TOKEN_LIFETIME));
        let Some((before, request, _)) = self.tokens.get(token) else { return Ok(None) };
        if before != parameters {
            let message = "The specified client token has already been used in another resource request.";
            return Err(Refusal::new("ClientTokenConflictException", message));
        }
        Ok(self.requests.iter().find(|known| known.token == *request).cloned())
    }

    /// One request at a time on each resource. Looking lets time pass.
    pub fn must_be_idle(&mut self, type_name: &str, identifier: &str) -> Result<(), Refusal> {
        let busy = |request: &Request| request.is_on(type_name, identifier) && !request.status.is_over();
        let running = self.requests.iter().find(|request| busy(request)).map(|request| request.token.clone());
        let Some(running) = running else { return Ok(()) };
        self.look_at(type_name, identifier);
        let message = format!(
            "Resource of type '{type_name}' with identifier '{identifier}' is already being operated on by \
             another request with RequestToken {running}."
        );
        Err(Refusal::new("ConcurrentOperationException", message))
    }

    pub fn begin(
        &mut self,
        operation: Operation,
        type_name: &str,
        identifier: Option<String>,
        properties: Value,
        client: Option<(String, Value)>,
    ) -> Request {
        self.serial += 1;
        let now = self.now();
        let request = Request {
            token: format!("{:08x}-0000-4000-8000-000000000000", self.serial),
            operation,
            type_name: type_name.to_owned(),
            identifier,
            properties,
            status: Status::Pending,
            left: self.polls.get(&operation).copied().unwrap_or(1),
            failure: self.failures.get_mut(&operation).and_then(VecDeque::pop_front),
            time: now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64(),
        };
        if let Some((token, parameters)) = client {
            self.tokens.insert(token, (parameters, request.token.clone(), now));
        }
        self.requests.push(request.clone());
        request
    }

    /// A request, with what has become of it meanwhile.
    pub fn poll(&mut self, token: &str) -> Result<Request, Refusal> {
        let at = self.place(token)?;
        self.advance(at);
        Ok(self.requests[at].clone())
    }

    pub fn cancel(&mut self, token: &str) -> Result<Request, Refusal> {
        let at = self.place(token)?;
        let request = &mut self.requests[at];
        if request.status.is_over() {
            let message = format!("Request {token} is already {}", request.status.word());
            return Err(Refusal::new("ConcurrentModificationException", message));
        }
        request.status = Status::CancelInProgress;
        Ok(request.clone())
    }

    fn place(&self, token: &str) -> Result<usize, Refusal> {
        let message = || format!("Request with token '{token}' was not found");
        let place = self.requests.iter().position(|request| request.token == token);
        place.ok_or_else(|| Refusal::new("RequestTokenNotFoundException", message()))
    }

    fn look_at(&mut self, type_name: &str, identifier: &str) {
        let on_it = |at: &usize| self.requests[*at].is_on(type_name, identifier);
        let places: Vec<_> = (0..self.requests.len()).filter(on_it).collect();
        places.into_iter().for_each(|at| self.advance(at));
    }

    fn advance(&mut self, at: usize) {
        let mut request = self.requests[at].clone();
        match request.status {
            Status::Success | Status::Failed | Status::CancelComplete => return,
            Status::CancelInProgress => request.status = Status::CancelComplete,
            Status::Pending | Status::InProgress if request.left > 0 => {
                request.left -= 1;
                request.status = Status::InProgress;
            }
            Status::Pending | Status::InProgress => self.finish(&mut request),
        }
        self.requests[at] = request;
    }

    fn finish(&mut self, request: &mut Request) {
        request.status = Status::Failed;
        let strands = request.failure.as_ref().map(|failure| failure.strands);
        if strands == Some(false) {
            return;
        }
        if let Err(failure) = self.apply(request) {
            request.failure = Some(failure);
        } else if strands.is_none() {
            request.status = Status::Success;
        }
    }

    fn apply(&mut self, request: &mut Request) -> Result<(), Failure> {
        if request.operation == Operation::Create {
            let of = Type::of(&request.type_name)
                .map_err(|refusal| Failure::new("InvalidRequest", &refusal.message))?;
            self.serial += 1;
            model::complete(&of, &mut request.properties, self.serial);
            request.identifier = model::identifier(&of, &request.properties);
        }
        let identifier = request.identifier.clone().unwrap_or_default();
        let key = (request.type_name.clone(), identifier.clone());
        let exists = self.resources.contains_key(&key);
        let what = format!("Resource of type '{}' with identifier '{identifier}'", request.type_name);
        match request.operation {
            Operation::Create if exists => {
                return Err(Failure::new("AlreadyExists", &format!("{what} already exists.")));
            }
            Operation::Update | Operation::Delete if !exists => {
                return Err(Failure::new("NotFound", &format!("{what} was not found.")));
            }
            Operation::Create | Operation::Update => {
                drop(self.resources.insert(key, request.properties.clone()))
            }
            Operation::Delete => drop(self.resources.remove(&key)),
        }
        Ok(())
    }
}
